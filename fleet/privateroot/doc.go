// Package privateroot replays a recording away from the machine it was made on. It makes a root
// directory of the objects that the recording needs, and runs a command in it: as a user without
// rights, with processes, mounts and a network of its own, and the network is down. A replay is no
// sandbox by itself (docs/recording.md, "Recordings from elsewhere").
//
// The command's view is made of namespaces(7): user, mount, pid, network, ipc and uts. Where the
// machine does not allow them, an UnsupportedError says so.
package privateroot
