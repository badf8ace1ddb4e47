/* Like the paper's WebCrawler: workers use a connection until they are told to stop, and main closes
   it without waiting for the last use. The window is a few instructions wide. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int open = 1, pages, wrong;
static int is_open(void) {
  pthread_mutex_lock(&lock);
  int now = open;
  pthread_mutex_unlock(&lock);
  return now;
}
static void fetch(void) {
  pthread_mutex_lock(&lock);
  if (open)
    pages++;
  else
    wrong = 1;
  pthread_mutex_unlock(&lock);
}
static void *crawl(void *x) {
  for (int i = 0; i < 20 && is_open(); i++) {
    fetch();
    for (volatile int work = 0; work < 20000; work++) {}
  }
  return x;
}
int main(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, crawl, 0);
  for (volatile int work = 0; work < 100000; work++) {}
  pthread_mutex_lock(&lock);
  open = 0;
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  if (!wrong) return 0;
  fprintf(stderr, "a page was fetched after the end\n");
  return 1;
}
