// Package sessions tests, through the real program, what becomes of legacy sessions when the program restarts, when
// connections break, and when clients vanish.
package sessions
