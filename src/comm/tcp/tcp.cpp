#include "comm/tcp/tcp.h"

#include <numeric>

#include "comm/tcp/tcp_wire.h"
#include "comm/wire_communicator.h"

namespace bloomery {

std::unique_ptr<Communicator> make_tcp_communicator(const ControlOptions& options) {
  const auto control = std::make_shared<ControlPlane>(options);
  std::vector<int> all(static_cast<std::size_t>(options.size));
  std::iota(all.begin(), all.end(), 0);
  const auto world = std::make_shared<WireWorld>();
  world->world = control->world();
  world->rank = options.rank;
  world->make_host = [control](const std::string& name, std::vector<int> members) {
    return make_tcp_host_group(control, name, std::move(members));
  };
  world->wire = make_tcp_wire(*control, *world->make_host("start", all));
  world->next_group = 1;
  return make_wire_communicator(world, 0, all);
}

}  // namespace bloomery
