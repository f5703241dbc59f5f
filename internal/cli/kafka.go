package cli

import (
	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/bus"
)

// Bus is the bus's configuration as the file's; program is the client id where it names none.
func Bus(k config.Kafka, program string) bus.Config {
	id := k.ClientID
	if id == "" {
		id = program
	}
	return bus.Config{
		Brokers:  k.Brokers,
		ClientID: id,
		RackID:   k.RackID,
		Acks:     k.Acks,
		TLS:      bus.TLS(k.TLS),
		SASL:     bus.SASL(k.SASL),
	}
}

// Topics are the bus's topics as the file's.
func Topics(names config.TopicNames, made config.TopicSettings) bus.Topics {
	return bus.Topics{
		Usage: names.Usage, Decisions: names.Decisions, Policies: names.Policies, Status: names.Status,
		Partitions: made.Partitions, Replication: made.Replication, MinInSync: made.MinInSync, UsageRetention: made.UsageRetention,
	}
}
