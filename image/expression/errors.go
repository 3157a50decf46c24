package expression

import (
	"fmt"

	"diagnose/image/debuginfo"
)

// NameError says that a name is unknown where an expression is evaluated.
type NameError struct {
	Name string
	// Of is the type that has no such member; "" for other names.
	Of string
	// Known are the names that there are; it may be nil.
	Known []string
}

func (e *NameError) Error() string {
	if e.Of != "" {
		return fmt.Sprintf("%s has no member %s", e.Of, e.Name)
	}
	return "there is no variable " + e.Name
}

// TypeError says that an operator cannot be applied to operands of these types. It does not depend
// on their values.
type TypeError struct{ Problem string }

func (e *TypeError) Error() string { return e.Problem }

func typeProblem(format string, args ...any) error {
	return &TypeError{fmt.Sprintf(format, args...)}
}

// ValueError says that an expression has no value with the operands that it had.
type ValueError struct{ Problem string }

func (e *ValueError) Error() string { return e.Problem }

func valueProblem(format string, args ...any) error {
	return &ValueError{fmt.Sprintf(format, args...)}
}

// typeText names a type in an error.
func typeText(t debuginfo.Type) string {
	if t == nil || t.Name() == "" {
		return "a type without a name"
	}
	return t.Name()
}
