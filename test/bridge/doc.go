// Package bridge holds the tests of what goes between clients and servers of either era beside plain calls: questions of
// servers, subscriptions, log messages, resources, pages. They drive the real program through its own door.
package bridge
