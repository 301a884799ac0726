// Package archtest holds the tests of the shape of this repository: which room may import which, where third-party
// modules may be used, that every package says what it is for, that the tests which documents name are there, and that the
// files under deploy are sound.
package archtest
