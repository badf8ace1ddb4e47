/* The paper's Airlines: 150 seats, four sellers; each looks for a free seat and sells it in two
   steps that are locked each, but not together. */
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int seats = 150, sold;
static int left(void) {
  pthread_mutex_lock(&lock);
  int now = seats;
  pthread_mutex_unlock(&lock);
  return now;
}
static void sell(void) {
  pthread_mutex_lock(&lock);
  seats--;
  sold++;
  pthread_mutex_unlock(&lock);
}
static void *seller(void *x) {
  while (left() > 0) sell();
  return x;
}
int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, seller, 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  if (sold == 150) return 0;
  fprintf(stderr, "sold %d of 150 seats\n", sold);
  return 1;
}
