/* The variables that several threads touch, or the locks if the program's accesses are not seen.

   A variable is shared once two threads have touched it and one of them wrote. What the thread
   that created it did before any other thread touched it does not count. No thread creates the
   variables of a module. */

#include "threads.h"
#include <stddef.h>
#include <sys/mman.h>

enum { VARIABLES = 1 << 20, TRIED = 8 };

static struct variable *variables;

static struct variable *table(void) {
    struct variable *known = __atomic_load_n(&variables, __ATOMIC_ACQUIRE);
    if (known) return known;
    void *made = mmap(NULL, sizeof(struct variable) * VARIABLES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return NULL;
    if (__atomic_compare_exchange_n(&variables, &known, made, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    munmap(made, sizeof(struct variable) * VARIABLES);
    return known;
}

static struct variable *place_of(uint64_t address, int make) {
    struct variable *all = table();
    if (!all) return NULL;
    uint64_t start = mixed(address >> 12) + (address >> 2 & 1023); /* keeps neighbours close */
    struct variable *place = NULL;
    for (uint32_t tried = 0; tried < TRIED; tried++) {
        place = &all[(start + tried) & (VARIABLES - 1)];
        uint64_t seen = __atomic_load_n(&place->address, __ATOMIC_RELAXED);
        if (seen == address) return place;
        if (!seen && make &&
            __atomic_compare_exchange_n(&place->address, &seen, address, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return place;
        if (!seen && !make) return NULL;
        if (seen == address) return place;
    }
    if (!make) return NULL;
    struct variable fresh = {.address = address}; /* no free entry: replace one */
    *place = fresh;
    return place;
}

static void forget(struct variable *variable) {
    variable->first_site = variable->other_site = 0;
    variable->maker = variable->other = 0;
    variable->several = variable->written = 0;
}

struct variable *touch(uint64_t address, uint32_t site, int write) {
    struct variable *variable = place_of(address, 1);
    if (!variable) return NULL;
    uint16_t thread = (uint16_t)(self - memory->threads + 1);
    if (variable->maker && variable->maker != thread && address >= self->stack_low &&
        address < self->stack_high && memory->threads[variable->maker - 1].state == SLOT_ENDED)
        forget(variable); /* the memory was the stack of a thread that has ended */
    if (!variable->first_site) variable->first_site = site;
    if (!variable->maker) {
        variable->maker = thread;
        if (in_module_data(address)) variable->other = thread;
    }
    if (variable->maker == thread && !variable->other) return variable;
    if (!variable->other) variable->other = thread;
    if (variable->other != thread) variable->several = 1;
    if (write) variable->written = 1;
    if (variable->several && variable->written) {
        mark(site, SHARED);
        mark(variable->other_site, SHARED);
    }
    variable->other_site = site;
    return variable;
}

void forget_variables(uint64_t low, uint64_t high) {
    for (uint64_t address = low; address < high; address++) {
        struct variable *variable = place_of(address, 0);
        if (variable) forget(variable);
    }
}
