// Package allocator has what the readers of heaps that are not the C library's share: the object that
// they find at an address, and the search through the data of the module that has the allocator.
//
// A reader finds the allocator's structures by their form and by checks that they pass among each other.
// It needs no symbols. Where a check fails it finds no heap, and where what it reads of an object is
// not certain it does not say whether the object is free.
package allocator
