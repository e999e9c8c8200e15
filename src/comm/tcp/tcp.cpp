#include "comm/tcp/tcp.h"

#include "comm/tcp/tcp_wire.h"

namespace bloomery {

std::shared_ptr<WireWorld> make_wire_world(const std::shared_ptr<ControlPlane>& control) {
  auto world = std::make_shared<WireWorld>();
  world->world = control->world();
  world->rank = control->rank();
  world->make_host = [control](const std::string& name, std::vector<int> members) {
    return make_tcp_host_group(control, name, std::move(members));
  };
  world->next_group = 1;
  return world;
}

std::unique_ptr<Communicator> make_tcp_communicator(const std::shared_ptr<ControlPlane>& control) {
  const std::shared_ptr<WireWorld> world = make_wire_world(control);
  const std::vector<int> all = control->all_ranks();
  world->wire = make_tcp_wire(*control, *world->make_host("start of tcp", all));
  return make_wire_communicator(world, 0, all);
}

}  // namespace bloomery
