package evidence

import "fmt"

// SizeText writes a number of bytes: "1 byte", "24 bytes".
func SizeText(n uint64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}
