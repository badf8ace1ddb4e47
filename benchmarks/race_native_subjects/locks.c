/* For the slow-down: nothing but locks; -DWORK: some work between them, as programs do. */
#include <pthread.h>
#ifndef WORK
#define WORK 0
#endif
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long total;
static void *work(void *x) {
  for (int i = 0; i < 40000; i++) {
    for (volatile int step = 0; step < WORK; step++) {}
    pthread_mutex_lock(&lock);
    total++;
    pthread_mutex_unlock(&lock);
  }
  return x;
}
int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  return total != 80000;
}
