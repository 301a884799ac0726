// Package reload tests, through the real program, how a changed configuration is put in force while clients call.
package reload
