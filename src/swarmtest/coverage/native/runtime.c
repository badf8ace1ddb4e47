/* The part of swarmtest that lives in the program under test; `swarmtest cc` links it in.

   Every block of the program calls one of the two callbacks below. A block that runs for the first
   time in a test is appended to a list in memory shared with swarmtest, and marked in a map so that
   it is appended once: reading and clearing a test's hits costs in proportion to the hits. Shared
   memory outlives the program, so a crash or a kill loses nothing.

   Every executable and shared library has its own copy (all symbols are hidden) and its own range
   of slots, claimed in a table in the shared memory the first time it is loaded. Slot 0 is none.

   If steps are wanted as well (branch coverage), each pair of blocks that a function executed one after
   the other goes into a hash table in that memory.

   Without swarmtest's environment variables the program runs as if this file were not there.

   The layout is known to fast.py as well, the fork server's messages to fork_server.py. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<execinfo.h>)
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/auxv.h>
#include <ucontext.h>
#endif
#if defined __x86_64__ && __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define CAN_SILENCE 1
#else
#define CAN_SILENCE 0
#endif

#pragma GCC visibility push(hidden)

__attribute__((used)) static const char marker[] = "swarmtest native runtime 1";

/* ---- the shared memory ---- */

enum { MODULES = 64, PATH_LENGTH = 480, HEADER_SIZE = 1 << 16 };
enum { FREE, CLAIMED, READY };
enum { CALL_SITES = 1, GUARDS = 2 };

struct module {
    uint32_t state;
    uint32_t kind;
    uint32_t first; /* slot */
    uint32_t count; /* of slots */
    uint64_t text;  /* link-time address of the code */
    uint64_t reserved;
    char path[PATH_LENGTH];
};

struct header {
    uint32_t slots;
    uint32_t hits;     /* entries in the list */
    uint32_t attached; /* modules loaded since swarmtest last set this to 0 */
    uint32_t next;     /* first slot that no module has */
    uint32_t no_room;  /* a module found no free slots */
    uint32_t room_for_steps; /* a power of two; 0: only blocks are wanted */
    uint32_t steps;    /* entries in the list of steps */
    uint32_t reserved[9];
    struct module modules[MODULES];
};

_Static_assert(sizeof(struct header) <= HEADER_SIZE, "the header has its place");

static struct header *header;
static uint8_t *map;      /* per slot: has it been hit */
static uint32_t *list;    /* the slots hit, in order */
static uint32_t *offsets; /* per slot of a guard: where in the code it lies */
static uint64_t *steps;   /* a hash table: from which block to which a function went; or NULL */
static uint32_t *steps_taken; /* the places in that table that are in use, in order */

static void use(char *memory) {
    size_t slots = ((struct header *)memory)->slots;
    map = (uint8_t *)memory + HEADER_SIZE;
    list = (uint32_t *)(map + slots);
    offsets = list + slots;
    header = (struct header *)memory;
    steps = NULL;
    if (header->room_for_steps) {
        steps = (uint64_t *)(memory + HEADER_SIZE + ((slots * 9 + 7) & ~(size_t)7));
        steps_taken = (uint32_t *)(steps + header->room_for_steps);
    }
    __atomic_fetch_add(&header->attached, 1, __ATOMIC_RELAXED);
}

static int attach(void) {
    const char *path = getenv("SWARMTEST_MAP");
    if (header || !path) return header != NULL;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return 0;
    off_t size = lseek(file, 0, SEEK_END);
    char *memory = size < HEADER_SIZE ? MAP_FAILED
                 : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return 0;
    use(memory);
    return 1;
}

/* ---- this module ---- */

static struct {
    uintptr_t bias; /* run-time minus link-time addresses */
    uintptr_t text;
    size_t size;
    int pieces; /* of code */
    int is_executable;
    char path[PATH_LENGTH];
} self;

static int find_self(struct dl_phdr_info *info, size_t size, void *place) {
    (void)size;
    self.pieces = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        self.pieces += info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
        if ((uintptr_t)place < start || (uintptr_t)place >= start + segment->p_memsz) continue;
        self.bias = info->dlpi_addr;
        self.text = segment->p_vaddr;
        self.size = segment->p_memsz;
        self.is_executable = !info->dlpi_name || !*info->dlpi_name;
        char resolved[PATH_MAX];
        const char *name = self.is_executable ? "/proc/self/exe" : info->dlpi_name;
        if (realpath(name, resolved) && strlen(resolved) < PATH_LENGTH)
            strcpy(self.path, resolved); /* else it stays empty, and swarmtest says so */
        return 1;
    }
    return 0;
}

static void know_self(void) {
    if (!self.size) dl_iterate_phdr(find_self, (void *)(uintptr_t)know_self);
}

static int is_ready(struct module *module) {
    for (int patience = 0; patience < 1000; patience++) {
        uint32_t state = __atomic_load_n(&module->state, __ATOMIC_ACQUIRE);
        if (state != CLAIMED) return state == READY;
        sched_yield();
    }
    return 0; /* whoever claimed it was killed while it did */
}

static void publish(struct module *module) {
    __atomic_store_n(&module->state, READY, __ATOMIC_RELEASE);
}

/* This module's entry in the table; a new one is CLAIMED, and its owner has to publish it. */
static struct module *claim(uint32_t kind, uint32_t count) {
    for (int i = 0; i < MODULES; i++) {
        struct module *module = &header->modules[i];
        uint32_t expected = FREE;
        if (__atomic_compare_exchange_n(&module->state, &expected, CLAIMED, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            uint64_t first = __atomic_fetch_add(&header->next, count, __ATOMIC_RELAXED);
            if (first + count > header->slots) break;
            module->kind = kind;
            module->first = (uint32_t)first;
            module->count = count;
            module->text = self.text;
            memcpy(module->path, self.path, PATH_LENGTH);
            return module;
        }
        if (is_ready(module) && module->kind == kind && module->count == count
            && strncmp(module->path, self.path, PATH_LENGTH) == 0)
            return module;
    }
    header->no_room = 1;
    return NULL;
}

/* ---- the callbacks ---- */

/* A call for each execution of a block would make tight loops take two or three times their time. So
   calls are overwritten in this process's copy of the code, which neither the file nor another
   process sees. A process of one test does so at the first call of a block. A process that runs one
   test after another does so for blocks that a test executes often, because it has to write the
   calls back before the next test. */
static enum { CALL_ALWAYS, CALL_ONCE, CALL_UNTIL_HOT } calls;

/* A byte of the map: 0, not hit; up to HOT, the calls of the block in this test; DONE, hit, and no
   longer counted. Overwriting a call twice takes about as long as HOT calls. */
enum { HOT = 32, DONE = 255 };

/* Where a block's call looks first: its byte of the map. NULL until there is a map, and for
   CALL_ONCE. GCC's blocks find it by the return address, clang's by the slot. */
static uint8_t *quick;

static struct {
    unsigned char *calls[4096]; /* that are overwritten until the test ends */
    unsigned count;
    int is_allowed; /* no other thread may be executing what is overwritten */
} hot;

#if CAN_SILENCE
static int is_call(const unsigned char *call, uintptr_t callback) {
    int32_t distance;
    memcpy(&distance, call + 1, sizeof distance);
    return *call == 0xe8 && (uintptr_t)call + 5 + (uintptr_t)(intptr_t)distance == callback;
}

static void silence(unsigned char *call, uintptr_t callback) {
    static const unsigned char nop[5] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
    if (__libc_single_threaded && is_call(call, callback)) memcpy(call, nop, sizeof nop);
}

static void write_two(unsigned char *place, unsigned char first, unsigned char second) {
    uint16_t both = (uint16_t)(first | second << 8);
    __asm__ volatile("movw %1, %0" : "=m"(*(uint16_t *)place) : "r"(both) : "memory");
}

/* Jump over the rest of a call. The two bytes are written at once, so they lie in one cache line. */
static int silence_until_next(unsigned char *call, uintptr_t callback) {
    if (!hot.is_allowed || hot.count == sizeof hot.calls / sizeof *hot.calls) return 0;
    if (((uintptr_t)call & 63) == 63 || !is_call(call, callback)) return 0;
    hot.calls[hot.count++] = call;
    write_two(call, 0xeb, 3);
    return 1;
}

static void restore_calls(uintptr_t callback) {
    while (hot.count) {
        unsigned char *call = hot.calls[--hot.count];
        write_two(call, 0xe8, (unsigned char)(callback - ((uintptr_t)call + 5)));
    }
}

static int can_write_code(void) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (self.bias + self.text) & -page;
    uintptr_t end = self.bias + self.text + self.size;
    return mprotect((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
}

/* A directory has a link for itself, one for its name, and one for each directory in it. */
static int has_one_thread(void) {
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}
#else
static void silence(unsigned char *call, uintptr_t callback) { (void)call, (void)callback; }
static int silence_until_next(unsigned char *call, uintptr_t callback) {
    (void)call, (void)callback;
    return 0;
}
static void restore_calls(uintptr_t callback) { (void)callback; }
static int can_write_code(void) { return 0; }
static int has_one_thread(void) { return 0; }
#endif

/* A step from one block to the next in the same call of a function. The frame of the caller tells
   calls apart, so what a function calls in between is not mistaken for a block of its own. A frame
   that an earlier call left behind may give a step that the function cannot take; swarmtest knows
   which ones it can, and drops the others. */
enum { FRAMES_KNOWN = 1 << 12, TRIES = 64 };
static struct { uintptr_t frame; uint32_t slot; } last_blocks[FRAMES_KNOWN];

static void step_to(uint32_t slot, uintptr_t frame) {
    size_t place = (frame >> 4 ^ frame >> 16) % FRAMES_KNOWN;
    uint32_t from = last_blocks[place].frame == frame ? last_blocks[place].slot : 0;
    last_blocks[place].frame = frame;
    last_blocks[place].slot = slot;
    if (!from) return;
    uint64_t step = (uint64_t)from << 32 | slot;
    uint32_t mask = header->room_for_steps - 1;
    uint32_t entry = (uint32_t)(step * 0x9e3779b97f4a7c15u >> 32) & mask;
    for (int i = 0; i < TRIES; i++, entry = (entry + 1) & mask) {
        uint64_t seen = __atomic_load_n(&steps[entry], __ATOMIC_RELAXED);
        if (seen == step) return;
        if (seen) continue;
        uint32_t number = __atomic_fetch_add(&header->steps, 1, __ATOMIC_RELAXED);
        if (number <= mask) steps_taken[number] = entry;
        __atomic_store_n(&steps[entry], step, __ATOMIC_RELEASE);
        return;
    }
}

/* List before map: killed in between, a slot is listed twice, which does no harm; the other way
   round it would stay marked and never be listed again. */
static void hit(uint32_t slot, uintptr_t after_call, uintptr_t callback, uintptr_t frame) {
    if (steps) step_to(slot, frame);
    unsigned char *call = (unsigned char *)after_call - 5;
    if (calls == CALL_ONCE) silence(call, callback);
    uint8_t count = __atomic_load_n(&map[slot], __ATOMIC_RELAXED);
    if (count) {
        if (count == HOT && (calls != CALL_UNTIL_HOT || !silence_until_next(call, callback)))
            map[slot] = DONE;
        return;
    }
    uint32_t place = __atomic_fetch_add(&header->hits, 1, __ATOMIC_RELAXED);
    if (place < header->slots) list[place] = slot;
    __atomic_store_n(&map[slot], 1, __ATOMIC_RELEASE);
}

static inline int is_known(uint8_t *seen) {
    uint8_t count = __atomic_load_n(seen, __ATOMIC_RELAXED);
    if (__builtin_expect((uint8_t)(count - 1) < HOT - 1, 1)) {
        __atomic_store_n(seen, (uint8_t)(count + 1), __ATOMIC_RELAXED);
        return 1;
    }
    return count == DONE;
}

#ifndef __clang__ /* GCC knows no guards: a slot is the place of the call in the code */
static uintptr_t call_text;
static uintptr_t call_slots;
static uint32_t call_first;

void __sanitizer_cov_trace_pc(void);

__attribute__((noinline, cold)) static void hit_at(uintptr_t after_call, uintptr_t frame) {
    /* A call takes at least four bytes, so no two share a slot. */
    uintptr_t slot = (after_call - call_text) >> 2;
    if (slot < call_slots)
        hit(call_first + (uint32_t)slot, after_call, (uintptr_t)__sanitizer_cov_trace_pc, frame);
}

__attribute__((aligned(64))) void __sanitizer_cov_trace_pc(void) {
    uintptr_t after_call = (uintptr_t)__builtin_return_address(0);
    if (!quick || !is_known(&quick[after_call >> 2]))
        hit_at(after_call, (uintptr_t)__builtin_dwarf_cfa());
}

static void claim_call_sites(void) {
    struct module *module = claim(CALL_SITES, (uint32_t)(self.size >> 2) + 1);
    if (!module) return;
    publish(module);
    call_text = self.bias + self.text;
    call_first = module->first;
    call_slots = module->count;
}
#endif

/* From now on, blocks report in every test. */
static void report_in_every_test(int restores) {
    if (steps) return; /* every block always calls */
    calls = restores && can_write_code() ? CALL_UNTIL_HOT : CALL_ALWAYS;
    hot.is_allowed = calls == CALL_UNTIL_HOT && has_one_thread();
#ifdef __clang__
    quick = map;
#else
    /* All calls have a slot if all code is in one piece. */
    if (call_slots && self.pieces == 1 && call_text % 4 == 0)
        quick = (uint8_t *)((uintptr_t)map + call_first - (call_text >> 2));
#endif
}

static struct module *guards;
static uint32_t *first_guard, *last_guard;
static const uintptr_t *first_pc, *last_pc;

__attribute__((aligned(64))) void __sanitizer_cov_trace_pc_guard(uint32_t *guard) {
    uint32_t slot = *guard;
#ifdef __clang__
    if (quick && is_known(&quick[slot])) return;
#endif
    if (slot)
        hit(slot, (uintptr_t)__builtin_return_address(0), (uintptr_t)__sanitizer_cov_trace_pc_guard,
            (uintptr_t)__builtin_dwarf_cfa());
}

/* A test has ended: calls that were overwritten for its time are written back. */
static void prepare_next_test(void) {
    if (calls != CALL_UNTIL_HOT) return;
#ifdef __clang__
    restore_calls((uintptr_t)__sanitizer_cov_trace_pc_guard);
#else
    restore_calls((uintptr_t)__sanitizer_cov_trace_pc);
#endif
    hot.is_allowed = has_one_thread();
}

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop) {
    if (start == stop || *start) return;
    first_guard = start, last_guard = stop;
    if (!attach()) return;
    know_self();
    guards = claim(GUARDS, (uint32_t)(stop - start));
    if (!guards) return;
    for (uint32_t i = 0; start + i < stop; i++) start[i] = guards->first + i;
}

void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop) {
    first_pc = start, last_pc = stop;
    if (!guards || guards->state != CLAIMED) return;
    uint32_t *offset = offsets + guards->first;
    for (const uintptr_t *entry = start; entry < stop; entry += 2)
        *offset++ = (uint32_t)(entry[0] - self.bias - self.text);
    publish(guards);
}

/* In the process of swarmtest itself: a library that Python has loaded is to write to this memory.
   It runs many tests in one process, so every block has to call each time. */
__attribute__((visibility("default"))) void swarmtest_record(void *memory) {
    prepare_next_test(); /* calls that were overwritten for the memory before this one */
    calls = CALL_ALWAYS;
    quick = NULL;
    memset(last_blocks, 0, sizeof last_blocks);
    use(memory);
    know_self();
#ifndef __clang__
    claim_call_sites();
#endif
    report_in_every_test(1);
    if (!first_guard) return;
    for (uint32_t *guard = first_guard; guard < last_guard; guard++) *guard = 0;
    guards = NULL;
    __sanitizer_cov_trace_pc_guard_init(first_guard, last_guard);
    __sanitizer_cov_pcs_init(first_pc, last_pc);
}

/* In the process of swarmtest itself: forget what the test has hit. */
__attribute__((visibility("default"))) void swarmtest_forget(void) {
    uint32_t count = header->hits < header->slots ? header->hits : header->slots;
    for (uint32_t i = 0; i < count; i++) map[list[i]] = 0;
    header->hits = 0;
    if (steps) {
        count = header->steps < header->room_for_steps ? header->steps : header->room_for_steps;
        for (uint32_t i = 0; i < count; i++) steps[steps_taken[i]] = 0;
        header->steps = 0;
    }
    prepare_next_test();
}

#include "runtime_server.c"

#include "runtime_stack.c"

/* ---- before main ---- */

__attribute__((constructor(101))) static void begin(void) {
    if (!attach()) return;
    know_self();
#ifndef __clang__
    claim_call_sites();
#endif
    watch_crashes();
    if (read_orders() && server.per_process > 1)
        report_in_every_test(self.is_executable); /* which has swarmtest_next; a library has not */
    else if (!steps && can_write_code())
        calls = CALL_ONCE;
}

/* Last of the constructors (this file is last on the linker's line), just before main. */
__attribute__((constructor)) static void serve_before_main(void) {
    if (!read_orders() || server.per_process) return;
    know_self();
    if (self.is_executable) serve();
}

#pragma GCC visibility pop
