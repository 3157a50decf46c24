package x86

// extension decodes what x86asm does not know or takes for something else.
func (d *decoder) extension() bool { return false }

func (d *decoder) unknownVector() {}
