/* A condition is waited for without a look whether it holds already. */
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static void *consume(void *x) {
  pthread_mutex_lock(&lock);
  pthread_cond_wait(&filled, &lock);
  pthread_mutex_unlock(&lock);
  return x;
}
static void *produce(void *x) {
  pthread_mutex_lock(&lock);
  pthread_cond_signal(&filled);
  pthread_mutex_unlock(&lock);
  return x;
}
int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], 0, consume, 0);
  pthread_create(&threads[1], 0, produce, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  return 0;
}
