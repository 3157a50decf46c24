package eventlog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
)

// syscallArguments has for each system call of agent/src/engine/table.c the number of its
// arguments, and which of them, counted from 0, are texts: openat/4:1.
const syscallArguments = `
read/3 write/3 open/3:0 close/1 stat/2:0 fstat/2 lstat/2:0 poll/3 lseek/3 mmap/6 mprotect/3 munmap/2 brk/1
rt_sigaction/4 rt_sigprocmask/4 rt_sigreturn/0 ioctl/3 pread64/4 pwrite64/4 readv/3 writev/3 access/2:0 pipe/1
select/5 sched_yield/0 mremap/5 msync/3 mincore/3 madvise/3 shmget/3 shmat/3 shmctl/3 dup/1 dup2/2 pause/0
nanosleep/2 getitimer/2 alarm/1 setitimer/3 getpid/0 sendfile/4 socket/3 connect/3 accept/3 sendto/6 recvfrom/6
sendmsg/3 recvmsg/3 shutdown/2 bind/3 listen/2 getsockname/3 getpeername/3 socketpair/4 setsockopt/5 getsockopt/5
clone/5 fork/0 vfork/0 execve/3:0 exit/1 wait4/4 kill/2 uname/1 semget/3 semop/3 semctl/4 shmdt/1 msgget/2 msgsnd/4
msgrcv/5 msgctl/3 fcntl/3 flock/2 fsync/1 fdatasync/1 truncate/2:0 ftruncate/2 getdents/3 getcwd/2 chdir/1:0
fchdir/1 rename/2:01 mkdir/2:0 rmdir/1:0 creat/2:0 link/2:01 unlink/1:0 symlink/2:01 readlink/3:0 chmod/2:0 fchmod/2
chown/3:0 fchown/3 lchown/3:0 umask/1 gettimeofday/2 getrlimit/2 getrusage/2 sysinfo/1 times/1 ptrace/4 getuid/0
syslog/3 getgid/0 setuid/1 setgid/1 geteuid/0 getegid/0 setpgid/2 getppid/0 getpgrp/0 setsid/0 setreuid/2 setregid/2
getgroups/2 setgroups/2 setresuid/3 getresuid/3 setresgid/3 getresgid/3 getpgid/1 setfsuid/1 setfsgid/1 getsid/1
capget/2 capset/2 rt_sigpending/2 rt_sigtimedwait/4 rt_sigqueueinfo/3 rt_sigsuspend/2 sigaltstack/2 utime/2:0
mknod/3:0 uselib/1 personality/1 ustat/2 statfs/2:0 fstatfs/2 sysfs/3 getpriority/2 setpriority/3 sched_setparam/2
sched_getparam/2 sched_setscheduler/3 sched_getscheduler/1 sched_get_priority_max/1 sched_get_priority_min/1
sched_rr_get_interval/2 mlock/2 munlock/2 mlockall/1 munlockall/0 vhangup/0 modify_ldt/3 pivot_root/2:01 _sysctl/1
prctl/5 arch_prctl/2 adjtimex/1 setrlimit/2 chroot/1:0 sync/0 acct/1:0 settimeofday/2 mount/5:1 umount2/2:0
swapon/2:0 swapoff/1:0 reboot/4 sethostname/2 setdomainname/2 iopl/1 ioperm/3 create_module/2 init_module/3
delete_module/2:0 get_kernel_syms/1 query_module/5 quotactl/4 nfsservctl/3 getpmsg/5 putpmsg/5 afs_syscall/5
tuxcall/3 security/3 gettid/0 readahead/3 setxattr/5:01 lsetxattr/5:01 fsetxattr/5:1 getxattr/4:0 lgetxattr/4:0
fgetxattr/4 listxattr/3:0 llistxattr/3:0 flistxattr/3 removexattr/2:01 lremovexattr/2:01 fremovexattr/2:1 tkill/2
time/1 futex/6 sched_setaffinity/3 sched_getaffinity/3 set_thread_area/1 io_setup/2 io_destroy/1 io_getevents/5
io_submit/3 io_cancel/3 get_thread_area/1 lookup_dcookie/3 epoll_create/1 epoll_ctl_old/4 epoll_wait_old/4
remap_file_pages/5 getdents64/3 set_tid_address/1 restart_syscall/0 semtimedop/4 fadvise64/4 timer_create/3
timer_settime/4 timer_gettime/2 timer_getoverrun/1 timer_delete/1 clock_settime/2 clock_gettime/2 clock_getres/2
clock_nanosleep/4 exit_group/1 epoll_wait/4 epoll_ctl/4 tgkill/3 utimes/2:0 vserver/5 mbind/6 set_mempolicy/3
get_mempolicy/5 mq_open/4:0 mq_unlink/1:0 mq_timedsend/5 mq_timedreceive/5 mq_notify/2 mq_getsetattr/3 kexec_load/4
waitid/5 add_key/5:0 request_key/4:0 keyctl/5 ioprio_set/3 ioprio_get/2 inotify_init/0 inotify_add_watch/3:1
inotify_rm_watch/2 migrate_pages/4 openat/4:1 mkdirat/3:1 mknodat/4:1 fchownat/5:1 futimesat/3:1 newfstatat/4:1
unlinkat/3:1 renameat/4:13 linkat/5:13 symlinkat/3:02 readlinkat/4:1 fchmodat/3:1 faccessat/3:1 pselect6/6 ppoll/5
unshare/1 set_robust_list/2 get_robust_list/3 splice/6 tee/4 sync_file_range/4 vmsplice/4 move_pages/6 utimensat/4:1
epoll_pwait/6 signalfd/3 timerfd_create/2 eventfd/1 fallocate/4 timerfd_settime/4 timerfd_gettime/2 accept4/4
signalfd4/4 eventfd2/2 epoll_create1/1 dup3/3 pipe2/2 inotify_init1/1 preadv/5 pwritev/5 rt_tgsigqueueinfo/4
perf_event_open/5 recvmmsg/5 fanotify_init/2 fanotify_mark/5 prlimit64/4 name_to_handle_at/5:1 open_by_handle_at/3
clock_adjtime/2 syncfs/1 sendmmsg/4 setns/2 getcpu/3 process_vm_readv/6 process_vm_writev/6 kcmp/5 finit_module/3
sched_setattr/3 sched_getattr/4 renameat2/5:13 seccomp/3 getrandom/3 memfd_create/2:0 kexec_file_load/5 bpf/3
execveat/5:1 userfaultfd/1 membarrier/3 mlock2/3 copy_file_range/6 preadv2/6 pwritev2/6 pkey_mprotect/4 pkey_alloc/2
pkey_free/1 statx/5:1 io_pgetevents/6 rseq/4 uretprobe/0 pidfd_send_signal/4 io_uring_setup/2 io_uring_enter/6
io_uring_register/4 open_tree/3:1 move_mount/5:13 fsopen/2:0 fsconfig/5 fsmount/3 fspick/3:1 pidfd_open/2 clone3/2
close_range/3 openat2/4:1 pidfd_getfd/3 faccessat2/4:1 process_madvise/5 epoll_pwait2/6 mount_setattr/5:1
quotactl_fd/4 landlock_create_ruleset/3 landlock_add_rule/4 landlock_restrict_self/2 memfd_secret/1
process_mrelease/2 futex_waitv/5 set_mempolicy_home_node/4 cachestat/4 fchmodat2/4:1 map_shadow_stack/3 futex_wake/4
futex_wait/6 futex_requeue/4 statmount/4 listmount/4 lsm_get_self_attr/4 lsm_set_self_attr/4 lsm_list_modules/3
mseal/3 setxattrat/6:13 getxattrat/6:13 listxattrat/5:1 removexattrat/4:13 open_tree_attr/5:1 file_getattr/5:1
file_setattr/5:1 listns/4
`

// syscallForm describes a call's arguments.
type syscallForm struct {
	args  int
	texts map[int]bool
}

var syscallForms = func() map[string]syscallForm {
	forms := map[string]syscallForm{}
	for _, word := range strings.Fields(syscallArguments) {
		name, rest, _ := strings.Cut(word, "/")
		count, texts, _ := strings.Cut(rest, ":")
		args, err := strconv.Atoi(count)
		if err != nil {
			panic("record: " + word)
		}
		form := syscallForm{args, map[int]bool{}}
		for _, digit := range texts {
			form.texts[int(digit-'0')] = true
		}
		forms[name] = form
	}
	return forms
}()

// CallText shows the event of a system call as a C expression: small numbers as
// such, addresses in hexadecimal, and paths as the log has them:
//
//	openat(-100, "/etc/passwd", 524288, 0)
func (e *Event) CallText() string {
	name := SyscallName(e.Object)
	form := syscallForms[name]
	texts := e.texts()
	given := e.Args
	if e.Flags&FlagArrived != 0 && len(given) > 0 {
		given = given[:len(given)-1]
	}
	args := make([]string, len(given))
	for i, v := range given {
		args[i] = argumentText(v)
		if text, found := texts[v]; found && form.texts[i] {
			args[i] = strconv.Quote(text)
		}
	}
	return fmt.Sprintf("%s(%s)", name, strings.Join(args, ", "))
}

// TextArguments are the indexes of the arguments of the event's system call that are texts: paths
// and names, which end with a zero byte in memory.
func (e *Event) TextArguments() []int {
	return slices.Sorted(maps.Keys(syscallForms[SyscallName(e.Object)].texts))
}

// texts are those that the program passed, by their addresses.
func (e *Event) texts() map[uint64]string {
	var texts map[uint64]string
	for _, p := range e.Payloads {
		if p.Kind != PayloadText {
			continue
		}
		if texts == nil {
			texts = map[uint64]string{}
		}
		texts[uint64(p.Addr)] = string(p.Data)
	}
	return texts
}

// argumentText formats an argument that may be a number, perhaps a negative one of 32 or 64
// bits, or an address.
func argumentText(v uint64) string {
	const small = 1 << 20
	switch {
	case v < small:
		return strconv.FormatUint(v, 10)
	case int64(v) < 0 && int64(v) > -small:
		return strconv.FormatInt(int64(v), 10)
	case v>>32 == 0 && int32(v) < 0 && int32(v) > -small:
		return strconv.Itoa(int(int32(v)))
	}
	return fmt.Sprintf("%#x", v)
}

// Written returns the data that the event of a write to standard output or standard error
// wrote, and its address. ok is false for other events, and if the recording does not keep the
// data.
func (e *Event) Written() (text []byte, at evidence.Addr, ok bool) {
	if e.Kind != KindSyscall || len(e.Args) < 3 {
		return nil, 0, false
	}
	for _, p := range e.Payloads {
		if p.Kind == PayloadWritten {
			return p.Data, p.Addr, true
		}
	}
	return nil, 0, false
}
