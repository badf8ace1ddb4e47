/* Two threads count without a lock: updates get lost. */
#include <pthread.h>
#include <stdio.h>
static int counter;
static void *work(void *x) {
  int own = 0;
  for (int i = 0; i < 20; i++) {
    own += i;
    counter++;
  }
  return x;
}
int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  if (counter == 40) return 0;
  fprintf(stderr, "an update was lost: %d\n", counter);
  return 1;
}
