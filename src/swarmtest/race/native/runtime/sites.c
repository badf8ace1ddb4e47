/* Sites: where the program calls the library, as a module and an address in it; and pairs of
   sites. */

#include "threads.h"
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CACHED = 1 << 16, RANGES = 1024 };

struct range {
    uint64_t low, high, base;
    uint32_t module;
    uint32_t data;
};

static struct range ranges[RANGES];
static uint32_t range_count;
static uint32_t range_lock;
static struct {
    uint64_t caller;
    uint32_t site;
} cache[CACHED];
static uint64_t last_site; /* of this process: the site in the lower half, slot + 1 in the upper */

static uint32_t module_number(const char *path) {
    for (uint32_t i = 0; i < MODULES; i++) {
        struct module *module = &memory->modules[i];
        uint32_t free_state = SLOT_FREE;
        if (__atomic_compare_exchange_n(&module->state, &free_state, SLOT_NEW, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            snprintf(module->path, sizeof module->path, "%s", path);
            __atomic_store_n(&module->state, SLOT_RUNS, __ATOMIC_RELEASE);
            return i;
        }
        while (__atomic_load_n(&module->state, __ATOMIC_ACQUIRE) == SLOT_NEW) sched_yield();
        if (!strncmp(module->path, path, sizeof module->path - 1)) return i;
    }
    __atomic_fetch_or(&memory->header.no_room, NO_ROOM_MODULES, __ATOMIC_RELAXED);
    return MODULES - 1;
}

static int known_range(uint64_t low) {
    for (uint32_t i = 0; i < range_count; i++)
        if (ranges[i].low == low) return 1;
    return 0;
}

static int learn_module(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    char path[PATH_MAX] = "";
    const char *name = info->dlpi_name;
    if (!name || !*name) {
        if (range_count && ranges[0].base == info->dlpi_addr) return 0;
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        if (length <= 0) return 0;
        path[length] = 0;
        name = path;
    }
    uint32_t module = MODULES;
    for (int i = 0; i < info->dlpi_phnum && range_count < RANGES; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uint64_t low = info->dlpi_addr + part->p_vaddr;
        int code = !!(part->p_flags & PF_X);
        if (part->p_type != PT_LOAD || !(code || part->p_flags & PF_W) || known_range(low)) continue;
        if (module == MODULES) module = module_number(name);
        struct range range = {low, low + part->p_memsz, info->dlpi_addr, module, !code};
        ranges[range_count] = range;
        __atomic_store_n(&range_count, range_count + 1, __ATOMIC_RELEASE);
    }
    return 0;
}

static const struct range *range_of(uint64_t address) {
    uint32_t count = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (address >= ranges[i].low && address < ranges[i].high) return &ranges[i];
    return NULL;
}

static const struct range *learnt_range_of(uint64_t address) {
    const struct range *range = range_of(address);
    if (range) return range;
    while (__atomic_exchange_n(&range_lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
    dl_iterate_phdr(learn_module, NULL); /* the module may have been loaded since */
    __atomic_store_n(&range_lock, 0, __ATOMIC_RELEASE);
    return range_of(address);
}

int in_module_data(uint64_t address) {
    const struct range *range = range_of(address);
    return range && range->data;
}

static uint32_t site_with(uint64_t key, enum operation operation) {
    for (uint32_t tried = 0; tried < 64; tried++) {
        uint32_t number = (mixed(key ^ operation) + tried) & (SITES - 1);
        struct site *site = &memory->sites[number];
        uint64_t seen = 0;
        if (!number) continue; /* 0 stands for no site */
        if (__atomic_compare_exchange_n(&site->key, &seen, key, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            __atomic_store_n(&site->operation, operation, __ATOMIC_RELEASE);
            return number;
        }
        if (seen != key) continue;
        uint32_t does;
        while (!(does = __atomic_load_n(&site->operation, __ATOMIC_ACQUIRE))) {}
        if (does == (uint32_t)operation) return number;
    }
    __atomic_fetch_or(&memory->header.no_room, NO_ROOM_SITES, __ATOMIC_RELAXED);
    return 0;
}

uint32_t site_of(void *caller, enum operation operation) {
    uint64_t address = (uint64_t)caller - 1; /* the address of the call, not of its return */
    uint64_t name = address ^ (uint64_t)operation << 56;
    uint32_t place = mixed(name) & (CACHED - 1);
    if (__atomic_load_n(&cache[place].caller, __ATOMIC_ACQUIRE) == name) return cache[place].site;
    const struct range *range = learnt_range_of(address);
    if (!range) return 0;
    uint64_t offset = (address - range->base) & 0xffffffffffff;
    uint32_t site = site_with((uint64_t)(range->module + 1) << 48 | offset, operation);
    uint64_t empty = 0; /* the first site keeps the entry, which never changes */
    if (__atomic_compare_exchange_n(&cache[place].caller, &empty, 1, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
        cache[place].site = site;
        __atomic_store_n(&cache[place].caller, name, __ATOMIC_RELEASE);
    }
    return site;
}

void mark(uint32_t site, uint32_t flag) {
    uint32_t *flags = &memory->sites[site].flags;
    if (site && !(__atomic_load_n(flags, __ATOMIC_RELAXED) & flag))
        __atomic_fetch_or(flags, flag, __ATOMIC_RELAXED);
}

void forget_last_site(void) { last_site = 0; }

void record_pair(uint32_t site) {
    uint64_t thread = (uint64_t)(self - memory->threads + 1);
    uint64_t before = __atomic_exchange_n(&last_site, thread << 32 | site, __ATOMIC_ACQ_REL);
    uint32_t first = (uint32_t)before;
    if (!first || !site) return;
    uint64_t switched = before >> 32 != thread;
    if (switched) mark(first, PREDECESSOR);
    uint64_t pair = (uint64_t)first | (uint64_t)site << 24 | switched << 48;
    for (uint32_t tried = 0; tried < 64; tried++) {
        uint64_t *place = &memory->pairs[(mixed(pair) + tried) & (PAIRS - 1)];
        uint64_t seen = __atomic_load_n(place, __ATOMIC_RELAXED);
        if (seen == pair) return;
        if (!seen && __atomic_compare_exchange_n(place, &seen, pair, 0, __ATOMIC_RELAXED,
                                                 __ATOMIC_RELAXED)) {
            uint32_t *count = &memory->header.pairs;
            memory->pair_list[__atomic_fetch_add(count, 1, __ATOMIC_RELAXED)] = pair;
            return;
        }
        if (seen == pair) return;
    }
    __atomic_fetch_or(&memory->header.no_room, NO_ROOM_PAIRS, __ATOMIC_RELAXED);
}
