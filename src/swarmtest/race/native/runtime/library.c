/* The whole library as one translation unit, so that the compiler can inline the fast path of an
   access. With ACCESSES it includes the hooks of -fsanitize=thread. */

#include "program.c"
#include "noise.c"
#include "sites.c"
#include "variables.c"
#include "locks.c"
#include "waits.c"
#include "c11.c"
#ifdef ACCESSES
#include "accesses.c"
#include "atomics.c"
#endif
