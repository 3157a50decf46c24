// A Go program with a C part, for the tests of realprograms.
package main

/*
#include <stdlib.h>
#include <string.h>

static char *repeat(const char *s, int n)
{
	size_t l = strlen(s);
	char *r = malloc(l * n + 1);

	for (int i = 0; i < n; i++)
		memcpy(r + i * l, s, l);
	r[l * n] = 0;
	return r;
}

extern int callback(char *, int);

static int back(int n)
{
	char *p = calloc(n + 1, 8);
	int r = callback(p, n);

	free(realloc(p, n * 16 + 8));
	return r;
}
*/
import "C"

import (
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"
)

//export callback
func callback(p *C.char, n C.int) C.int {
	s := C.CString(fmt.Sprint(n))
	defer C.free(unsafe.Pointer(s))
	*p = *s
	if n > 0 {
		return 1 + C.back(n-1)
	}
	return 0
}

func null() (err any) {
	defer func() { err = recover() }()
	var p *[100]int
	return p[7]
}

func main() {
	debug.SetPanicOnFault(true)
	var wait sync.WaitGroup
	sums := make([]int, 40)
	for k := range sums {
		wait.Go(func() {
			if k%4 == 0 {
				runtime.LockOSThread() // and never unlocked: the thread ends with it
			}
			for i := range 300 {
				s := C.CString("some text of Go's")
				r := C.repeat(s, C.int(i))
				sums[k] += len(C.GoString(r)) + int(C.back(C.int(i%20)))
				C.free(unsafe.Pointer(r))
				C.free(unsafe.Pointer(s))
			}
			runtime.GC()
		})
	}
	wait.Wait()
	fmt.Println(sums, null())
	out, err := exec.Command("echo", "a child").Output()
	fmt.Printf("%s%v\n", out, err)
	_, err = net.LookupHost("localhost")
	fmt.Println(err)
}
