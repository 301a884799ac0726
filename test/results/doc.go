// Package results tests through the real program what becomes of results of tools that are over their bound.
package results
