package load

import (
	"slices"
)

// Summary is the median, and half the distance of the quartiles. It sorts the
// values, of which there is one at least.
func Summary(values []float64) (median, spread float64) {
	slices.Sort(values)
	return quantile(values, 0.5), (quantile(values, 0.75) - quantile(values, 0.25)) / 2
}

// quantile interpolates between the neighbours in a sorted list.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}
