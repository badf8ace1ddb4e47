/* Adds, multiplies and compares what a line says, as in `3 4 + 2 *`; the result of each line. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 16

static long stack[DEEPEST];
static int depth;
static const int weights[] = {1, 2, 4, 8};

static int push(long value) {
  if (depth >= DEEPEST)
    return 0;
  stack[depth++] = value;
  return 1;
}

static long pop(void) {
  return depth > 0 ? stack[--depth] : 0;
}

static long power(long base, long exponent) {
  long result = 1;
  while (exponent > 0) {
    if (exponent & 1)
      result *= base;
    base *= base;
    exponent >>= 1;
  }
  return result;
}

static long bits(long value) {
  long count = 0;
  for (int i = 0; i < 32; i++)
    if (value & (1L << i))
      count += weights[i % 4];
  return count;
}

static int apply(char operator) {
  long b = pop(), a = pop();
  switch (operator) {
  case '+': return push(a + b);
  case '-': return push(a - b);
  case '*': return push(a * b);
  case '/': return b != 0 && push(a / b);
  case '^': return b < 20 && push(power(a, b));
  case '<': return push(a < b || (a == b && depth == 0));
  case '#': return push(a) && push(bits(b));
  }
  return 0;
}

int main(int count, char **words) {
  char line[200];
  FILE *file = count == 2 ? fopen(words[1], "r") : stdin;
  int wrong = 0;
  if (!file)
    return 9;
  while (fgets(line, sizeof line, file)) {
    depth = 0;
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
      int good = isdigit((unsigned char)word[0]) ? push(atol(word)) : apply(word[0]);
      if (!good) {
        wrong++;
        break;
      }
    }
    printf("%ld", pop());
    if (depth)
      printf(" and %d more", depth);
    putchar('\n');
  }
  return wrong > 0;
}
