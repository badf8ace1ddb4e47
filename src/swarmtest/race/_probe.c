/* The accelerator: C versions of the code that runs most often. It relies on the GIL; builds
   without one use the Python versions.

   - Pairs: the probe of pair coverage
   - Locks: locks that no other thread holds, in a free run
   - Baton: the baton of a thread in a controlled run */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* Pairs: notes every two sites that are passed one after the other, and whether the thread changed
   in between. An exact set of 64-bit numbers that grows when needed. */

#define SITE_BITS 24
#define SITE_MASK ((1u << SITE_BITS) - 1)
#define FIRST_SIZE 4096

typedef struct {
    PyObject_HEAD
    uint64_t *table; /* pairs plus one, so that 0 is an empty entry */
    size_t mask;
    size_t used;
    uint64_t last_thread; /* 0 if no site has been passed */
    uint64_t last_site;
    PyObject *inner; /* the probe to call first, or NULL */
} Pairs;

static inline size_t place_of(uint64_t value, size_t mask)
{
    return (size_t)((value * 0x9E3779B97F4A7C15ull) >> 32) & mask;
}

static int grow(Pairs *self)
{
    size_t size = (self->mask + 1) * 2, i;
    uint64_t *table = PyMem_Calloc(size, sizeof(uint64_t));
    if (table == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (i = 0; i <= self->mask; i++) {
        uint64_t value = self->table[i];
        if (value) {
            size_t at = place_of(value, size - 1);
            while (table[at])
                at = (at + 1) & (size - 1);
            table[at] = value;
        }
    }
    PyMem_Free(self->table);
    self->table = table;
    self->mask = size - 1;
    return 0;
}

static inline int note(Pairs *self, uint64_t pair)
{
    uint64_t value = pair + 1;
    size_t at = place_of(value, self->mask);
    while (self->table[at]) {
        if (self->table[at] == value)
            return 0;
        at = (at + 1) & self->mask;
    }
    self->table[at] = value;
    self->used++;
    return self->used * 2 > self->mask ? grow(self) : 0;
}

/* Note a site; return -1 with an exception set if that fails. */
static inline int pass_number(Pairs *self, long number)
{
    uint64_t site = (uint64_t)number, thread;
    if (site > SITE_MASK) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a site is a number below 2**24");
        return -1;
    }
    thread = PyThreadState_GetID(PyThreadState_Get());
    if (self->last_thread) {
        uint64_t changed = thread != self->last_thread;
        if (note(self, self->last_site << (SITE_BITS + 1) | site << 1 | changed) < 0)
            return -1;
    }
    self->last_thread = thread;
    self->last_site = site;
    return 0;
}

static inline int pass(Pairs *self, PyObject *number)
{
    return pass_number(self, PyLong_AsLong(number));
}

static PyObject *Pairs_access(Pairs *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *obj;
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "a probe takes a site and perhaps an object");
        return NULL;
    }
    if (self->inner != NULL) {
        /* Other threads may run inside the inner probe, so the access comes after theirs. */
        PyObject *inner = self->inner;
        Py_INCREF(inner);
        obj = PyObject_Vectorcall(inner, args, (size_t)count, NULL);
        Py_DECREF(inner);
        if (obj == NULL)
            return NULL;
    } else {
        obj = count == 2 ? args[1] : Py_None;
        Py_INCREF(obj);
    }
    if (pass(self, args[0]) < 0)
        Py_CLEAR(obj);
    return obj;
}

static PyObject *Pairs_passes(Pairs *self, PyObject *site)
{
    if (pass(self, site) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *Pairs_reset(Pairs *self, PyObject *inner)
{
    PyObject *before = self->inner;
    memset(self->table, 0, (self->mask + 1) * sizeof(uint64_t));
    self->used = 0;
    self->last_thread = 0;
    Py_INCREF(inner);
    self->inner = inner == Py_None ? NULL : inner;
    if (inner == Py_None)
        Py_DECREF(inner);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *Pairs_began(Pairs *self, PyObject *ident)
{
    (void)self, (void)ident; /* the interpreter does not reuse the ids of thread states */
    Py_RETURN_NONE;
}

static PyObject *Pairs_pairs(Pairs *self, PyObject *ignored)
{
    size_t i;
    PyObject *list = PyList_New(0);
    (void)ignored;
    for (i = 0; list != NULL && i <= self->mask; i++) {
        if (self->table[i]) {
            PyObject *pair = PyLong_FromUnsignedLongLong(self->table[i] - 1);
            if (pair == NULL || PyList_Append(list, pair) < 0)
                Py_CLEAR(list);
            Py_XDECREF(pair);
        }
    }
    return list;
}

static PyObject *Pairs_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Pairs *self;
    if (PyTuple_GET_SIZE(args) || (kwargs != NULL && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "Pairs() takes no arguments");
        return NULL;
    }
    self = (Pairs *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->table = PyMem_Calloc(FIRST_SIZE, sizeof(uint64_t));
    self->mask = FIRST_SIZE - 1;
    if (self->table == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int Pairs_traverse(Pairs *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->inner);
    return 0;
}

static int Pairs_clear(Pairs *self)
{
    Py_CLEAR(self->inner);
    return 0;
}

static void Pairs_dealloc(Pairs *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Pairs_clear(self);
    PyMem_Free(self->table);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Pairs_methods[] = {
    {"access", (PyCFunction)(void (*)(void))Pairs_access, METH_FASTCALL, "The probe."},
    {"passes", (PyCFunction)Pairs_passes, METH_O, "Note a site at which there is no probe."},
    {"reset", (PyCFunction)Pairs_reset, METH_O, "Forget all pairs; set the inner probe."},
    {"began", (PyCFunction)Pairs_began, METH_O, "Note that a thread begins."},
    {"pairs", (PyCFunction)Pairs_pairs, METH_NOARGS, "Return the pairs that were passed."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot Pairs_slots[] = {
    {Py_tp_new, Pairs_new},
    {Py_tp_dealloc, Pairs_dealloc},
    {Py_tp_traverse, Pairs_traverse},
    {Py_tp_clear, Pairs_clear},
    {Py_tp_methods, Pairs_methods},
    {0, NULL},
};

static PyType_Spec Pairs_spec = {
    .name = "_swarmtest_probe.Pairs",
    .basicsize = sizeof(Pairs),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = Pairs_slots,
};

/* Locks: acquires locks that no other thread holds, in a free run that makes no noise. Uncommon
   cases are left to the Python methods of the policy and of the lock. */

typedef struct {
    PyObject *code; /* NULL in an empty entry */
    int instruction;
    long site; /* -1 if library code acquires the lock */
} Known;

typedef struct {
    PyObject_HEAD
    PyObject *threads; /* the policy's tasks, by thread identity */
    PyObject *pairs;   /* where to note sites, or NULL */
    PyObject *acquire; /* the policy's own method */
    PyObject *blocked; /* its method for a lock that is not free */
    Known *known;
    size_t mask;
    size_t used;
    uint64_t last_thread; /* the last thread that asked, and its task */
    PyObject *last_task;
    unsigned long long released; /* the number of releases */
} Locks;

/* The locks of the current run, used by `with` statements, and the Python method they fall back
   to. */
static Locks *armed;
static PyObject *python_enter;
static PyObject *word_acquire, *word_release, *minus_one;
/* The offsets of slots in the Python classes Lock and Task. */
static Py_ssize_t raw_at, owner_at, held_at, doing_at;

static inline PyObject **slot(PyObject *object, Py_ssize_t offset)
{
    return (PyObject **)((char *)object + offset);
}

static inline void set_slot(PyObject *object, Py_ssize_t offset, PyObject *value)
{
    PyObject **place = slot(object, offset), *before = *place;
    *place = Py_NewRef(value);
    Py_XDECREF(before);
}

static Known *find(Known *known, size_t mask, PyObject *code, int instruction)
{
    size_t at = place_of((uint64_t)(uintptr_t)code + (uint64_t)instruction, mask);
    while (known[at].code && (known[at].code != code || known[at].instruction != instruction))
        at = (at + 1) & mask;
    return &known[at];
}

static PyObject *Locks_learn(Locks *self, PyObject *args)
{
    PyObject *code;
    int instruction;
    long site;
    Known *place;
    if (!PyArg_ParseTuple(args, "Oil", &code, &instruction, &site))
        return NULL;
    if ((self->used + 1) * 2 > self->mask) {
        size_t size = (self->mask + 1) * 2, i;
        Known *bigger = PyMem_Calloc(size, sizeof(Known));
        if (bigger == NULL)
            return PyErr_NoMemory();
        for (i = 0; i <= self->mask; i++) {
            Known *old = &self->known[i];
            if (old->code)
                *find(bigger, size - 1, old->code, old->instruction) = *old;
        }
        PyMem_Free(self->known);
        self->known = bigger;
        self->mask = size - 1;
    }
    place = find(self->known, self->mask, code, instruction);
    if (place->code == NULL) {
        Py_INCREF(code);
        *place = (Known){code, instruction, site};
        self->used++;
    }
    Py_RETURN_NONE;
}

/* Note the site that acquires a lock. Return 1 on success, 0 if the site is not known, -1 on
   failure. With `inside`, the caller is a Python method of the lock, so the site is one frame
   further out. */
static int note_caller(Locks *self, int inside)
{
    int done = 0;
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    if (inside && frame != NULL)
        Py_SETREF(frame, PyFrame_GetBack(frame));
    if (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        Known *place = find(self->known, self->mask, (PyObject *)code, PyFrame_GetLasti(frame));
        if (place->code != NULL)
            done = place->site < 0 || pass_number((Pairs *)self->pairs, place->site) == 0 ? 1 : -1;
        Py_DECREF(code);
    }
    Py_XDECREF(frame);
    return done;
}

/* Return the task of this thread (borrowed); NULL, perhaps with an exception, if it has none. */
static PyObject *task_here(Locks *self)
{
    PyObject *ident, *task;
    uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
    if (self->last_thread == thread)
        return self->last_task;
    ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    task = ident ? PyDict_GetItemWithError(self->threads, ident) : NULL;
    Py_XDECREF(ident);
    if (task != NULL) {
        self->last_thread = thread;
        Py_XSETREF(self->last_task, Py_NewRef(task));
    }
    return task;
}

static inline int is_busy(PyObject *task)
{
    PyObject *doing = *slot(task, doing_at);
    return doing == NULL || PyUnicode_GET_LENGTH(doing) > 0;
}

static int try_raw(PyObject *lock)
{
    int taken;
    PyObject *answer = PyObject_CallMethodOneArg(*slot(lock, raw_at), word_acquire, Py_False);
    if (answer == NULL)
        return -1;
    taken = answer == Py_True;
    Py_DECREF(answer);
    return taken;
}

/* Acquire a lock if the calling site is known; return NULL without an exception if it is not. */
static PyObject *take(Locks *self, PyObject *task, PyObject *const *args, int inside)
{
    PyObject *answer = NULL;
    int known = self->pairs == NULL || is_busy(task) ? 1 : note_caller(self, inside), taken;
    if (known <= 0)
        return NULL;
    Py_INCREF(task);
    taken = try_raw(args[0]);
    if (taken > 0 && PyList_Append(*slot(task, held_at), args[0]) == 0) {
        set_slot(args[0], owner_at, task);
        answer = Py_NewRef(Py_True);
    } else if (taken == 0) {
        PyObject *all[4] = {task, args[0], args[1], args[2]};
        answer = PyObject_Vectorcall(self->blocked, all, 4, NULL);
    }
    Py_DECREF(task);
    return answer;
}

static PyObject *Locks_acquire(Locks *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *task, *answer;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "acquire takes a lock, blocking and a timeout");
        return NULL;
    }
    task = task_here(self);
    answer = task ? take(self, task, args, 1) : NULL;
    if (answer == NULL && !PyErr_Occurred())
        return PyObject_Vectorcall(self->acquire, args, 3, NULL);
    return answer;
}

static int let_go(PyObject *owner, PyObject *lock)
{
    PyObject *held = *slot(owner, held_at);
    Py_ssize_t i;
    for (i = PyList_GET_SIZE(held) - 1; i >= 0; i--) {
        if (PyList_GET_ITEM(held, i) == lock)
            return PyList_SetSlice(held, i, i + 1, NULL);
    }
    return 0;
}

static PyObject *Locks_release(Locks *self, PyObject *lock)
{
    PyObject *answer, *owner = *slot(lock, owner_at);
    if (owner != NULL && owner != Py_None) {
        int failed;
        Py_INCREF(owner);
        set_slot(lock, owner_at, Py_None);
        failed = let_go(owner, lock);
        Py_DECREF(owner);
        if (failed)
            return NULL;
    }
    answer = PyObject_CallMethodNoArgs(*slot(lock, raw_at), word_release);
    self->released++;
    return answer;
}

/* The methods of `with lock` while a run is armed. */

static PyObject *lock_enter(PyObject *lock, PyObject *ignored)
{
    PyObject *task, *answer = NULL;
    (void)ignored;
    if (armed != NULL) {
        PyObject *args[3] = {lock, Py_True, minus_one};
        Locks *self = (Locks *)Py_NewRef((PyObject *)armed);
        task = task_here(self);
        answer = task ? take(self, task, args, 0) : NULL;
        Py_DECREF(self);
    }
    if (answer == NULL && !PyErr_Occurred())
        return PyObject_CallOneArg(python_enter, lock);
    return answer;
}

static PyObject *lock_exit(PyObject *lock, PyObject *const *args, Py_ssize_t count)
{
    (void)args, (void)count;
    if (armed == NULL)
        return PyObject_CallMethodNoArgs(lock, word_release);
    return Locks_release(armed, lock);
}

static PyMethodDef enter_method = {"__enter__", (PyCFunction)lock_enter, METH_NOARGS, NULL};
static PyMethodDef exit_method = {"__exit__", (PyCFunction)(void (*)(void))lock_exit, METH_FASTCALL,
                                  NULL};

static int find_slot(PyObject *type, const char *name, Py_ssize_t *offset)
{
    PyObject *found = PyObject_GetAttrString(type, name);
    if (found == NULL)
        return -1;
    if (Py_TYPE(found) == &PyMemberDescr_Type)
        *offset = ((PyMemberDescrObject *)found)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s is no slot", name);
    Py_DECREF(found);
    return PyErr_Occurred() ? -1 : 0;
}

/* Return __enter__ and __exit__ for a Python class of locks; look up its slots and those of
   tasks. */
static PyObject *methods_for(PyObject *module, PyObject *args)
{
    PyObject *lock, *task, *enter;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O", &PyType_Type, &lock, &PyType_Type, &task, &enter))
        return NULL;
    if (find_slot(lock, "raw", &raw_at) < 0 || find_slot(lock, "owner", &owner_at) < 0 ||
        find_slot(task, "held", &held_at) < 0 || find_slot(task, "doing", &doing_at) < 0)
        return NULL;
    Py_XSETREF(python_enter, Py_NewRef(enter));
    return Py_BuildValue("NN", PyDescr_NewMethod((PyTypeObject *)lock, &enter_method),
                         PyDescr_NewMethod((PyTypeObject *)lock, &exit_method));
}

static PyObject *Locks_arm(Locks *self, PyObject *ignored)
{
    (void)ignored;
    Py_INCREF(self);
    Py_XSETREF(armed, self);
    Py_RETURN_NONE;
}

static PyObject *Locks_disarm(Locks *self, PyObject *ignored)
{
    (void)ignored;
    if (armed == self)
        Py_CLEAR(armed);
    Py_RETURN_NONE;
}

/* Drop this thread's `threading.local` values, as at the end of a thread. Before Python 3.13
   they are in a dictionary that Python code can reach as well. */
static PyObject *forget_locals(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
#if PY_VERSION_HEX >= 0x030D0000
    PyThreadState *state = PyThreadState_Get();
    Py_CLEAR(state->threading_local_key);
    Py_CLEAR(state->threading_local_sentinel);
#endif
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"forget_locals", forget_locals, METH_NOARGS, "Drop this thread's thread-locals."},
    {"methods_for", methods_for, METH_VARARGS, "Return __enter__ and __exit__ of a lock class."},
    {NULL, NULL, 0, NULL},
};

static PyObject *Locks_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Locks *self;
    PyObject *threads, *pairs, *acquire, *blocked;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!OOO", &PyDict_Type, &threads, &pairs, &acquire, &blocked))
        return NULL;
    self = (Locks *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->threads = Py_NewRef(threads);
    self->pairs = pairs == Py_None ? NULL : Py_NewRef(pairs);
    self->acquire = Py_NewRef(acquire);
    self->blocked = Py_NewRef(blocked);
    self->mask = 63;
    self->known = PyMem_Calloc(self->mask + 1, sizeof(Known));
    if (self->known == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int Locks_traverse(Locks *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->threads);
    Py_VISIT(self->pairs);
    Py_VISIT(self->acquire);
    Py_VISIT(self->blocked);
    Py_VISIT(self->last_task);
    return 0;
}

static int Locks_clear(Locks *self)
{
    Py_CLEAR(self->threads);
    Py_CLEAR(self->pairs);
    Py_CLEAR(self->acquire);
    Py_CLEAR(self->blocked);
    Py_CLEAR(self->last_task);
    self->last_thread = 0;
    return 0;
}

static void Locks_dealloc(Locks *self)
{
    PyTypeObject *type = Py_TYPE(self);
    size_t i;
    PyObject_GC_UnTrack(self);
    Locks_clear(self);
    for (i = 0; self->known != NULL && i <= self->mask; i++)
        Py_XDECREF(self->known[i].code);
    PyMem_Free(self->known);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Locks_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))Locks_acquire, METH_FASTCALL, "Acquire a lock."},
    {"release", (PyCFunction)Locks_release, METH_O, "Release a lock."},
    {"learn", (PyCFunction)Locks_learn, METH_VARARGS, "Set the site of an instruction, or -1."},
    {"arm", (PyCFunction)Locks_arm, METH_NOARGS, "Make `with` statements use these locks."},
    {"disarm", (PyCFunction)Locks_disarm, METH_NOARGS, "Undo `arm`."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef Locks_members[] = {
    {"released", T_ULONGLONG, offsetof(Locks, released), READONLY, "Number of releases so far."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot Locks_slots[] = {
    {Py_tp_new, Locks_new},
    {Py_tp_dealloc, Locks_dealloc},
    {Py_tp_traverse, Locks_traverse},
    {Py_tp_clear, Locks_clear},
    {Py_tp_methods, Locks_methods},
    {Py_tp_members, Locks_members},
    {0, NULL},
};

static PyType_Spec Locks_spec = {
    .name = "_swarmtest_probe.Locks",
    .basicsize = sizeof(Locks),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = Locks_slots,
};

/* Baton: releasing it lets its thread run. Handing over with two Python locks would wake the other
   thread twice, since it has to wait for the GIL after the lock. */

typedef struct {
    PyObject_HEAD
    PyThread_type_lock lock;
    int held;
} Baton;

static PyObject *Baton_release(Baton *self, PyObject *ignored)
{
    (void)ignored;
    if (!self->held) {
        PyErr_SetString(PyExc_RuntimeError, "the baton is not held");
        return NULL;
    }
    self->held = 0;
    PyThread_release_lock(self->lock);
    Py_RETURN_NONE;
}

/* Wait for this baton; first release `other` if it is not NULL. */
static PyObject *wait_for(Baton *self, Baton *other)
{
    PyLockStatus status;
    if (other != NULL)
        other->held = 0;
    do {
        Py_BEGIN_ALLOW_THREADS
        if (other != NULL)
            PyThread_release_lock(other->lock);
        status = PyThread_acquire_lock_timed(self->lock, -1, 1);
        Py_END_ALLOW_THREADS
        other = NULL;
        if (status == PY_LOCK_INTR && PyErr_CheckSignals() < 0)
            return NULL;
    } while (status != PY_LOCK_ACQUIRED);
    self->held = 1;
    Py_RETURN_NONE;
}

static PyObject *Baton_acquire(Baton *self, PyObject *ignored)
{
    (void)ignored;
    return wait_for(self, NULL);
}

static PyObject *Baton_hand(Baton *self, PyObject *other)
{
    if (Py_TYPE(other) == Py_TYPE(self) && ((Baton *)other)->held)
        return wait_for(self, (Baton *)other);
    PyObject *answer = PyObject_CallMethodNoArgs(other, word_release);
    if (answer == NULL)
        return NULL;
    Py_DECREF(answer);
    return wait_for(self, NULL);
}

static PyObject *Baton_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Baton *self;
    if (PyTuple_GET_SIZE(args) || (kwargs != NULL && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "Baton() takes no arguments");
        return NULL;
    }
    self = (Baton *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->lock = PyThread_allocate_lock();
    if (self->lock == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    PyThread_acquire_lock(self->lock, NOWAIT_LOCK);
    self->held = 1;
    return (PyObject *)self;
}

static void Baton_dealloc(Baton *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (self->lock != NULL) {
        if (self->held)
            PyThread_release_lock(self->lock);
        PyThread_free_lock(self->lock);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Baton_methods[] = {
    {"acquire", (PyCFunction)Baton_acquire, METH_NOARGS, "Wait until this thread may run."},
    {"release", (PyCFunction)Baton_release, METH_NOARGS, "Let the baton's thread run."},
    {"hand", (PyCFunction)Baton_hand, METH_O, "Let another thread run, and wait."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot Baton_slots[] = {
    {Py_tp_new, Baton_new},
    {Py_tp_dealloc, Baton_dealloc},
    {Py_tp_methods, Baton_methods},
    {0, NULL},
};

static PyType_Spec Baton_spec = {
    .name = "_swarmtest_probe.Baton",
    .basicsize = sizeof(Baton),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = Baton_slots,
};

static int add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type == NULL)
        return -1;
    if (PyModule_AddObject(module, name, type) < 0) {
        Py_DECREF(type);
        return -1;
    }
    return 0;
}

static int execute(PyObject *module)
{
    if (!(word_acquire = PyUnicode_InternFromString("acquire")) ||
        !(word_release = PyUnicode_InternFromString("release")) ||
        !(minus_one = PyLong_FromLong(-1)))
        return -1;
    if (add_type(module, "Pairs", &Pairs_spec) < 0 || add_type(module, "Baton", &Baton_spec) < 0)
        return -1;
    return add_type(module, "Locks", &Locks_spec);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_swarmtest_probe",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__swarmtest_probe(void)
{
    return PyModuleDef_Init(&module_definition);
}
