/* The whole library as one unit, so that the compiler can inline the short way through an access.
   With ACCESSES it has the hooks of -fsanitize=thread as well. */

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
