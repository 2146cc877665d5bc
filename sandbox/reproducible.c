/* Makes the building of a guest image a function of its sources.

   The image is a snapshot of memory, so whatever CPython sees while it starts ends up in it: random bytes, times,
   numbers of inodes, the order of directories. Preloaded into componentize-py, this library answers itself what a C
   library need not ask the kernel for: the clock and, since glibc 2.41, random bytes. `pin_inputs` has the kernel hand
   it the system calls behind the rest, makes them, and answers always the same.
   Linux only. Nothing of it goes into the image. */

#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    THEN = 1577836800, /* 2020-01-01, for every time there is */
    OURS = 0x0de7e241, /* sixth argument of a call made from here; none of those below uses it */
    MAX_DESCRIPTORS = 1 << 16,
    MAX_ENTRIES = 1 << 13,
    RANDOM = 7, /* every random byte */
};

#if defined(__x86_64__)
static const int order[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8};
#define ARGUMENT(context, n) ((context)->uc_mcontext.gregs[order[n]])
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define ARGUMENT(context, n) ((context)->uc_mcontext.regs[n])
#define RESULT(context) ((context)->uc_mcontext.regs[0])
#else
#error "no registers are known for this processor"
#endif

struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

int clock_gettime(clockid_t clock, struct timespec *now) {
    (void)clock;
    *now = (struct timespec){.tv_sec = THEN};
    return 0;
}

ssize_t getrandom(void *into, size_t size, unsigned flags) {
    (void)flags;
    memset(into, RANDOM, size);
    return (ssize_t)size;
}

/* Serves a directory's entries by name. It is read whole each time: the kernel's own position only tells a new one. */
static long list_directory(int directory, char *into, long room) {
    static __thread char whole[1 << 18];
    static __thread struct entry *sorted[MAX_ENTRIES];
    static int served[MAX_DESCRIPTORS];
    long end = 0, used = 0, got;
    int count = 0;

    if (directory < 0 || directory >= MAX_DESCRIPTORS) return -EBADF;
    if (syscall(SYS_lseek, directory, 0L, SEEK_CUR) == 0) served[directory] = 0;
    syscall(SYS_lseek, directory, 0L, SEEK_SET);
    while ((got = syscall(SYS_getdents64, directory, whole + end, sizeof whole - end, 0L, 0L, (long)OURS)) > 0)
        end += got;
    if (got < 0) return -errno;
    for (long at = 0; at < end; at += ((struct entry *)(whole + at))->length) {
        struct entry *entry = (struct entry *)(whole + at);
        int place = count++;
        if (count > MAX_ENTRIES) return -ENOMEM;
        for (; place > 0 && strcmp(sorted[place - 1]->name, entry->name) > 0; place--)
            sorted[place] = sorted[place - 1];
        sorted[place] = entry;
    }
    for (; served[directory] < count; served[directory]++) {
        struct entry *entry = sorted[served[directory]];
        if (used + entry->length > room) break;
        entry->inode = 1;
        entry->offset = served[directory] + 1;
        memcpy(into + used, entry, entry->length);
        used += entry->length;
    }
    return used;
}

static void level_statx(struct statx *found) {
    const struct statx_timestamp then = {.tv_sec = THEN};
    found->stx_ino = found->stx_dev_major = found->stx_dev_minor = found->stx_nlink = found->stx_blocks = 1;
    found->stx_atime = found->stx_mtime = found->stx_ctime = found->stx_btime = then;
    if (S_ISDIR(found->stx_mode)) found->stx_size = 0;
}

static void level_stat(struct stat *found) {
    const struct timespec then = {.tv_sec = THEN};
    found->st_ino = found->st_dev = found->st_nlink = found->st_blocks = 1;
    found->st_atim = found->st_mtim = found->st_ctim = then;
    if (S_ISDIR(found->st_mode)) found->st_size = 0;
}

static void answer(int number, siginfo_t *info, void *interrupted) {
    ucontext_t *context = interrupted;
    const int before = errno;
    long result;

    (void)number;
    if (info->si_syscall == SYS_getdents64) {
        result = list_directory(ARGUMENT(context, 0), (char *)ARGUMENT(context, 1), ARGUMENT(context, 2));
    } else {
        result = syscall(info->si_syscall, ARGUMENT(context, 0), ARGUMENT(context, 1), ARGUMENT(context, 2),
                         ARGUMENT(context, 3), ARGUMENT(context, 4), (long)OURS);
        if (result < 0) result = -errno;
        else if (info->si_syscall == SYS_getrandom) memset((void *)ARGUMENT(context, 0), RANDOM, result);
        else if (info->si_syscall == SYS_statx) level_statx((struct statx *)ARGUMENT(context, 4));
        else level_stat((struct stat *)ARGUMENT(context, info->si_syscall == SYS_fstat ? 1 : 2));
    }
    RESULT(context) = result;
    errno = before;
}

/* From here on this thread and those it starts get the same answers in every build. Returns 0, or -1 where the kernel
   does not do this. */
int pin_inputs(void) {
    static const int answered[] = {SYS_getrandom, SYS_getdents64, SYS_statx, SYS_newfstatat, SYS_fstat};
    enum { COUNT = sizeof answered / sizeof *answered };
    struct sock_filter code[COUNT + 5] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OURS, COUNT + 1, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    for (int i = 0; i < COUNT; i++)
        code[3 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, answered[i], COUNT - i, 0);
    code[COUNT + 3] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[COUNT + 4] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    const struct sock_fprog program = {.len = COUNT + 5, .filter = code};
    const struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};

    if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
