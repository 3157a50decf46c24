package wording

// Bare is the text of an error without the name of the package that found it, for a place that
// says where the error is. Error types that know their text without it have a method Bare.
func Bare(err error) string {
	if known, ok := err.(interface{ Bare() string }); ok {
		return known.Bare()
	}
	return err.Error()
}
