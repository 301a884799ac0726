package proxy

import "slices"

// routedTasks are the requests about tasks that go to upstreams.
var routedTasks = []string{methodTaskGet, methodTaskResult, methodTaskUpdate, methodTaskCancel}

type taskSeries struct{ upstream, method string }

// runsTasks makes the series of an upstream that runs tasks. Few do, so the others have none.
func (m *Metrics) runsTasks(up string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, method := range routedTasks {
		m.ofTask(up, method)
	}
}

// ofTask finds the series of a request about a task; nil for another method, or no upstream. m.mu is held.
func (m *Metrics) ofTask(up, method string) *series {
	if up == ourselves || m.series[up] == nil || !slices.Contains(routedTasks, method) {
		return nil
	}
	key := taskSeries{up, method}
	if s, ok := m.tasks.Load(key); ok {
		return s.(*series)
	}
	s, _ := m.tasks.LoadOrStore(key, m.newSeries(up, method))
	return s.(*series)
}
