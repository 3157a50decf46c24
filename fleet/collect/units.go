package collect

import "fmt"

// Names of units.
const (
	scanPath    = "/diagnose-collect-scan.path"
	scanService = "/diagnose-collect-scan.service"
)

// InstallScan leaves core_pattern as it is, and has systemd scan the directory of systemd-coredump
// when it changes (systemd.path(5)).
func (i *Installation) InstallScan() error {
	if err := i.checkProgram(); err != nil {
		return err
	}
	var steps []step
	config, err := i.configStep()
	if err != nil {
		return err
	}
	if config.path != "" {
		steps = append(steps, config)
	}
	return i.take(append(steps,
		step{unitsDir + scanPath, fmt.Sprintf(`# Written by diagnose collect install --systemd-coredump.
[Unit]
Description=Cores that systemd-coredump stores
Documentation=man:systemd.path(5)

[Path]
PathChanged=%s
Unit=%s

[Install]
WantedBy=paths.target
`, CoredumpDir, scanService[1:]), "watch the directory of systemd-coredump; start it by: systemctl enable --now " + scanPath[1:]},
		step{unitsDir + scanService, fmt.Sprintf(`# Written by diagnose collect install --systemd-coredump.
[Unit]
Description=Take the cores that systemd-coredump stored

[Service]
Type=oneshot
ExecStart=%s collect scan
Nice=10
IOSchedulingClass=idle
UMask=0077
StateDirectory=diagnose
StateDirectoryMode=0700
NoNewPrivileges=yes
ProtectHome=read-only
PrivateNetwork=yes
`, i.Program), "take the new cores in it"}))
}

func (i *Installation) removedUnits() []step {
	return []step{{unitsDir + scanPath, "", "remove it"}, {unitsDir + scanService, "", "remove it"}}
}
