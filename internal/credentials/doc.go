// Package credentials gets the tokens that upstreams want to see from authorization servers, keeps them while they are good
// and renews them before they end. It knows nothing about who calls, or what for.
package credentials
