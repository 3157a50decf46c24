package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// unsupportedError says why this machine cannot do it.
type unsupportedError struct{ what string }

func (e *unsupportedError) Error() string { return e.what }

// network is a bridge with namespaces. Host 1 of its subnet is this process's.
type network struct {
	prefix string // of the names of namespaces and devices
	subnet int
	hosts  int
}

// newNetwork makes a bridge.
func newNetwork() (*network, error) {
	if os.Geteuid() != 0 {
		return nil, &unsupportedError{"network namespaces need root"}
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, &unsupportedError{"there is no ip command (package iproute2)"}
	}
	n := &network{prefix: fmt.Sprintf("df%d", os.Getpid()), subnet: os.Getpid() % 256, hosts: 1}
	if err := ip("link", "add", n.bridge(), "type", "bridge"); err != nil {
		return nil, &unsupportedError{fmt.Sprintf("no bridge can be made: %v", err)}
	}
	for _, args := range [][]string{{"addr", "add", n.address(1) + "/24", "dev", n.bridge()}, {"link", "set", n.bridge(), "up"}} {
		if err := ip(args...); err != nil {
			n.close()
			return nil, err
		}
	}
	return n, nil
}

func (n *network) bridge() string            { return n.prefix + "b" }
func (n *network) device(host int) string    { return fmt.Sprintf("%sv%d", n.prefix, host) }
func (n *network) namespace(host int) string { return fmt.Sprintf("%s-%d", n.prefix, host) }
func (n *network) address(host int) string   { return fmt.Sprintf("10.197.%d.%d", n.subnet, host) }

// add makes a namespace that is connected to the bridge, and returns its host.
func (n *network) add() (int, error) {
	n.hosts++
	host := n.hosts
	name, device := n.namespace(host), n.device(host)
	for _, args := range [][]string{
		{"netns", "add", name},
		{"link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", name},
		{"link", "set", device, "master", n.bridge(), "up"},
		{"-n", name, "addr", "add", n.address(host) + "/24", "dev", "eth0"},
		{"-n", name, "link", "set", "eth0", "up"},
		{"-n", name, "link", "set", "lo", "up"},
	} {
		if err := ip(args...); err != nil {
			return 0, err
		}
	}
	return host, nil
}

// command is one that runs in a namespace.
func (n *network) command(host int, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.namespace(host)}, args...)...)
}

// cut takes a host off the network, or connects it again.
func (n *network) cut(host int, off bool) error {
	state := "up"
	if off {
		state = "down"
	}
	return ip("link", "set", n.device(host), state)
}

func (n *network) close() {
	for host := 2; host <= n.hosts; host++ {
		ip("netns", "del", n.namespace(host))
	}
	ip("link", "del", n.bridge())
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
