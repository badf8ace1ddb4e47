/* A ring buffer for eight numbers. */
#include <stdlib.h>

enum { CAPACITY = 8 };

struct ring {
  int values[CAPACITY];
  int first, count;
};

struct ring *ring_new(void) { return calloc(1, sizeof(struct ring)); }

void ring_free(struct ring *ring) { free(ring); }

int ring_push(struct ring *ring, int value) {
  if (ring->count > CAPACITY) /* the bug: a full ring takes one more */
    return -1;
  ring->values[(ring->first + ring->count) % CAPACITY] = value;
  ring->count++;
  return 0;
}

int ring_pop(struct ring *ring) {
  if (ring->count == 0)
    return -1;
  int value = ring->values[ring->first];
  ring->first = (ring->first + 1) % CAPACITY;
  ring->count--;
  return value;
}
