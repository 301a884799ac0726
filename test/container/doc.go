// Package container tests the built program as the first process of a namespace, as it runs in a container.
package container
