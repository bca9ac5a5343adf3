/* The kinds of faults: which system calls are of a kind, and what becomes of them. */
#ifndef HONE_FAULT_KINDS_H
#define HONE_FAULT_KINDS_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum action { FAIL, SHORTEN, KILL };

#ifdef __x86_64__
#define OLD_CALL(name) SYS_##name,          /* calls that newer architectures do not have */
#else
#define OLD_CALL(name)
#endif
#define WRITES SYS_write, SYS_pwrite64, SYS_writev
#define OPENS OLD_CALL(open) SYS_openat
#define RENAMES OLD_CALL(rename) SYS_renameat, SYS_renameat2
#define REMOVES OLD_CALL(unlink) OLD_CALL(rmdir) SYS_unlinkat

static const struct kind {
    const char *name;
    enum action action;
    int error;
    int for_good;               /* not the Nth alone: it and all that follow */
    int calls[16], n;           /* n = 0: they end with a 0 (read is 0 on x86-64) */
} kinds[] = {
    {"malloc", FAIL, ENOMEM, 0, {0}, 0},        /* no system calls: inside.c lets these three fail */
    {"heap", FAIL, ENOMEM, 1, {0}, 0},
    {"abort", FAIL, 0, 0, {0}, 0},
    {"write", FAIL, ENOSPC, 0, {WRITES}, 3},
    {"full", FAIL, ENOSPC, 1, {WRITES}, 3},
    {"short", SHORTEN, 0, 0, {SYS_write, SYS_pwrite64}, 2},
    {"fsync", FAIL, EIO, 0, {SYS_fsync, SYS_fdatasync}, 2},
    {"rename", FAIL, EIO, 0, {RENAMES}, 0},
    {"mmap", FAIL, ENOMEM, 0, {SYS_mmap, SYS_mremap}, 2},
    {"open", FAIL, EMFILE, 0, {OPENS}, 0},
    {"read", FAIL, EIO, 0, {SYS_read, SYS_pread64}, 2},
    {"mkdir", FAIL, ENOSPC, 0, {OLD_CALL(mkdir) SYS_mkdirat}, 0},
    {"remove", FAIL, EIO, 0, {REMOVES}, 0},
    {"lock", FAIL, ENOLCK, 0, {SYS_flock}, 1},
    {"thread", FAIL, EAGAIN, 0, {SYS_clone, SYS_clone3}, 2},
    {"kill", KILL, 0, 0, {WRITES, OPENS, RENAMES, REMOVES, SYS_fsync, OLD_CALL(mkdir) SYS_mkdirat}, 0},
};

enum { KINDS = sizeof kinds / sizeof *kinds, MALLOC = 0, HEAP = 1, ABORT = 2, WRITE = 3 };

static int count_calls(const struct kind *k)
{
    int n = k->n;
    while (!k->n && n < 16 && k->calls[n])
        n++;
    return n;
}

static int is_of(const struct kind *k, long nr)
{
    for (int i = 0; i < count_calls(k); i++)
        if (k->calls[i] == nr)
            return 1;
    return 0;
}

/* The calls of a kind, or of all kinds; and prctl, which tells when main begins. */
static int gather(int *calls, const struct kind *only)
{
    int n = 0;
    calls[n++] = SYS_prctl;
    for (const struct kind *k = kinds; k < kinds + KINDS; k++)
        for (int i = 0; (!only || k == only) && i < count_calls(k); i++)
            calls[n++] = k->calls[i];           /* twice does no harm */
    return n;
}

static int filter(const struct kind *only)
{
    int calls[16 * KINDS + 1];
    const int n = gather(calls, only);
    struct sock_filter code[16 * KINDS + 4] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < n; i++)                 /* each goes to the last line */
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], (unsigned char)(n - i), 0);
    code[n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    const struct sock_fprog program = {.len = (unsigned short)(n + 3), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif
