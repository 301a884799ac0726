// Package web tests the built program with servers behind a URL whose streams are not as one would wish: written in other
// ways, refused, cut, never begun, or announced at another address.
package web
