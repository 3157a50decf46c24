package image_test

import (
	"errors"
	"fmt"
	"os/exec"

	"diagnose/evidence"
	"diagnose/image"
)

// A living process is read as a core is. OpenLive stops it, and Close lets it continue. A failed
// read is an error, never a zero.
func ExampleOpenLive() {
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
	pc := p.Threads[0].Registers.PC()
	fmt.Println("threads:", len(p.Threads), "in code:", p.ModuleAt(pc) != nil)

	_, err = image.Uint64(p, evidence.Addr(8))
	var unread *image.MemoryError
	fmt.Println("null is unreadable:", errors.As(err, &unread))
	// Output:
	// threads: 1 in code: true
	// null is unreadable: true
}
