/* The registers of a thread that is stopped at a system call. */
#ifndef HONE_FAULT_REGISTERS_H
#define HONE_FAULT_REGISTERS_H

#include <elf.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#ifdef __x86_64__
static long call_number(pid_t pid)
{
    return ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, orig_rax), NULL);
}
static unsigned long argument(pid_t pid, int i)
{
    static const size_t at[] = {offsetof(struct user_regs_struct, rdi), offsetof(struct user_regs_struct, rsi),
                                offsetof(struct user_regs_struct, rdx)};
    return (unsigned long)ptrace(PTRACE_PEEKUSER, pid, at[i], NULL);
}
static void set_third(pid_t pid, unsigned long value)
{
    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rdx), value);
}
static void refuse(pid_t pid, int error)        /* no call at all, and this result */
{
    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L);
    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), (long)-error);
}
static void call_again(pid_t pid)               /* no call now, but the same one as soon as the thread goes on */
{
    const long nr = call_number(pid), at = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip), NULL);
    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L);
    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), nr);
    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rip), at - 2);      /* the length of `syscall` */
}
#elif defined(__aarch64__)
static struct user_regs_struct registers(pid_t pid)
{
    struct user_regs_struct r = {0};
    struct iovec io = {&r, sizeof r};
    ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io);
    return r;
}
static void set_registers(pid_t pid, struct user_regs_struct r)
{
    struct iovec io = {&r, sizeof r};
    ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &io);
}
static long call_number(pid_t pid) { return (long)registers(pid).regs[8]; }
static unsigned long argument(pid_t pid, int i) { return (unsigned long)registers(pid).regs[i]; }
static void set_third(pid_t pid, unsigned long value)
{
    struct user_regs_struct r = registers(pid);
    r.regs[2] = value;
    set_registers(pid, r);
}
static void call_none(pid_t pid)
{
    int none = -1;
    struct iovec io = {&none, sizeof none};
    ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &io);
}
static void refuse(pid_t pid, int error)
{
    struct user_regs_struct r = registers(pid);
    call_none(pid);
    r.regs[0] = (unsigned long)-error;
    set_registers(pid, r);
}
static void call_again(pid_t pid)
{
    struct user_regs_struct r = registers(pid);
    call_none(pid);
    r.pc -= 4;
    set_registers(pid, r);
}
#else
#error "registers of this architecture are not known here"
#endif

#endif
