package parts

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

const (
	clusterNodes = 3 // the fewest that Redis Cluster has
	clusterSlots = 16384
)

// StartRedisCluster starts a Redis Cluster of three masters and no replicas,
// on Redis 7 or newer, and returns when every node serves its slots.
func StartRedisCluster(t T) []*Redis {
	t.Helper()
	nodes := make([]*Redis, clusterNodes)
	for i := range nodes {
		bus, err := FreePort()
		if err != nil {
			t.Fatalf("start redis cluster: %v", err)
		}
		nodes[i] = StartRedis(t, RedisOpts{Args: []string{
			"--cluster-enabled", "yes",
			"--cluster-port", strconv.Itoa(bus),
			"--cluster-node-timeout", "2000", // ms
		}})
		if err := nodes[i].takeSlots(i); err != nil {
			t.Fatalf("give slots to a node: %v", err)
		}
		if err := nodes[0].meet(nodes[i].Addr(), bus); err != nil {
			t.Fatalf("join a node: %v", err)
		}
	}
	Eventually(t, readyWithin, "redis cluster", func() error { return clusterAnswers(nodes) })
	return nodes
}

// takeSlots makes r the i-th node, owner of an equal part of the slots.
func (r *Redis) takeSlots(i int) error {
	if _, err := r.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
		return err
	}
	first, next := i*clusterSlots/clusterNodes, (i+1)*clusterSlots/clusterNodes
	_, err := r.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(next-1))
	return err
}

func (r *Redis) meet(addr string, bus int) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	_, err = r.Do("CLUSTER", "MEET", host, port, strconv.Itoa(bus))
	return err
}

func clusterAnswers(nodes []*Redis) error {
	for _, node := range nodes {
		info, err := node.Do("CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", clusterNodes)) {
			return fmt.Errorf("node %s: %s", node.Addr(), info)
		}
	}
	return nil
}
