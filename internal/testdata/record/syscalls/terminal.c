// A terminal and its controls.
// FLAGS: -lutil
// ENDS: SIGABRT
// EVENTS: syscall 20
#define _GNU_SOURCE
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "check.h"

int main(void)
{
	struct winsize size = { 40, 100, 0, 0 }, got;
	struct termios t;
	char name[64], text[64];
	int master, slave, waiting, one = 1;

	check(openpty(&master, &slave, name, NULL, &size));
	fold_in(name, strlen(name));
	must(isatty(slave) && !isatty(open("/dev/null", O_RDONLY)));
	check(ioctl(slave, TIOCGWINSZ, &got));
	must(got.ws_row == 40 && got.ws_col == 100);
	check(tcgetattr(slave, &t));
	fold_in(&t, sizeof(t));
	t.c_lflag &= (tcflag_t)~(ECHO | ICANON);
	check(tcsetattr(slave, TCSANOW, &t));
	check(write(master, "typed", 5));
	do /* it arrives when the kernel handles it */
		check(ioctl(slave, FIONREAD, &waiting));
	while (waiting < 5);
	must(check(read(slave, text, sizeof(text))) == 5);
	fold_in(text, 5);
	check(ioctl(slave, FIONBIO, &one));
	must(read(slave, text, 1) == -1 && errno == EAGAIN);
	check(ioctl(master, TIOCGPTN, &waiting));
	fold_in(&waiting, sizeof(waiting));
	size.ws_row = 50;
	check(ioctl(master, TIOCSWINSZ, &size));
	check(ioctl(slave, TIOCGWINSZ, &got));
	must(got.ws_row == 50);
	check(tcflush(slave, TCIOFLUSH));
	abort();
}
