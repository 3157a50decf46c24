package unwind_test

import (
	"fmt"
	"os/exec"

	"diagnose/image"
	"diagnose/image/unwind"
)

// The stacks of a living process. OpenLive stops it, and Close lets it continue.
func Example() {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p, err := image.OpenLive(cmd.Process.Pid, image.Options{})
	if err != nil {
		fmt.Println(err) // ptrace may be forbidden
		return
	}
	defer p.Close()
	u := unwind.New(p)
	for i := range p.Threads {
		stack := u.Walk(&p.Threads[i], 64)
		fmt.Println("thread", i+1, "has frames:", len(stack.Frames) > 0)
	}
	// Output: thread 1 has frames: true
}
