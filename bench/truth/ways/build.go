package ways

import (
	"context"
	"fmt"
	"os/exec"
)

// Build builds the diagnose of a checkout to a path, which is absolute.
func Build(ctx context.Context, root, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./cmd/diagnose")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ways: go build: %w: %s", err, out)
	}
	return nil
}
