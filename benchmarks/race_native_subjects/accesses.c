/* For the slow-down: two threads that sort arrays of their own; every step is an access. */
#include <pthread.h>
#include <stdlib.h>
enum { LENGTH = 60000 };
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void *work(void *x) {
  unsigned random = (unsigned)(unsigned long)x + 1;
  int *values = malloc(LENGTH * sizeof *values);
  for (int i = 0; i < LENGTH; i++) {
    random = random * 1103515245 + 12345;
    values[i] = (int)(random >> 8);
  }
  qsort(values, LENGTH, sizeof *values, order);
  long wrong = 0;
  for (int i = 1; i < LENGTH; i++) wrong += values[i - 1] > values[i];
  free(values);
  return (void *)wrong;
}
int main(void) {
  pthread_t threads[2];
  long wrong = 0;
  for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
  for (long i = 0; i < 2; i++) {
    void *result;
    pthread_join(threads[i], &result);
    wrong += (long)result;
  }
  return wrong != 0;
}
