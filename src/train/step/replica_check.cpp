#include "train/step/replica_check.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/hash.h"
#include "ops/quantized/quantized_weights.h"

namespace bloomery {
namespace {

struct HeldTensor {
  const Parameter* parameter;
  std::string hash;  // of its bits
};

std::string hash_of(const Tensor& value, Stream& stream, std::vector<char>& host) {
  host.resize(value.bytes());
  stream.copy(host.data(), value.data(), value.bytes());
  stream.synchronize();
  return hash_text(xxh3(std::string_view(host.data(), host.size())));
}

std::vector<HeldTensor> held_tensors(Rank& rank) {
  rank.store().wait_gathers();  // values that were updated may still be on their way
  std::vector<HeldTensor> all;
  std::vector<char> host;
  for (const Parameter* parameter : rank.parameters()) {
    if (const Tensor value = value_of(rank.stream(), *parameter)) {  // else only a shard stays
      all.push_back({parameter, hash_of(value, rank.stream(), host)});
    }
  }
  return all;
}

// A line per tensor: what it is and its hash. Only ranks with the same first part can be compared.
std::string lines(const std::vector<HeldTensor>& tensors,
                  const std::function<bool(const Parameter&)>& wanted) {
  std::string text;
  for (const HeldTensor& each : tensors) {
    if (wanted(*each.parameter)) {
      const Box& box = each.parameter->box;
      text += concat(each.parameter->name, " ", box.offset, box.extent, "\t", each.hash, "\n");
    }
  }
  return text;
}

using Holders = std::map<std::string, std::vector<int>>;  // places in the group, by hash

std::string compare_holders(const std::string& tensor, const Holders& holders, int size,
                            const std::vector<int>& world_ranks) {
  const auto most =
      std::ranges::max_element(holders, {}, [](const auto& each) { return each.second.size(); });
  const bool majority = 2 * static_cast<int>(most->second.size()) > size;
  std::string ranks;
  for (const auto& [hash, places] : holders) {
    for (const int place : places) {
      if (!majority || hash != most->first) {
        ranks += concat(ranks.empty() ? "" : ", ", world_ranks[static_cast<std::size_t>(place)]);
      }
    }
  }
  return concat(tensor, ": ",
                majority ? concat("rank(s) ", ranks, " differ from the other ", most->second.size())
                         : concat("ranks ", ranks, " differ, and it is unknown which is right"),
                "\n");
}

// What differs between the ranks of a group. The hash of everything comes first: it nearly always
// agrees, and then nothing else is told.
std::string drift_in(Communicator& group, int world_rank, const std::string& mine) {
  if (group.size() == 1) {
    return {};
  }
  HostGroup& host = group.host();
  const std::vector<std::string> hashes = host.gather("hash of replicas", hash_text(xxh3(mine)));
  if (std::ranges::all_of(hashes, [&](const std::string& each) { return each == hashes[0]; })) {
    return {};
  }
  std::vector<int> world_ranks;
  for (const std::string& each : host.gather("ranks of replicas", std::to_string(world_rank))) {
    world_ranks.push_back(std::stoi(each));
  }
  std::map<std::string, Holders> tensors;
  std::map<std::string, int> sizes;
  const std::vector<std::string> all = host.gather("replicas", mine);
  for (std::size_t place = 0; place < all.size(); ++place) {
    std::istringstream in(all[place]);
    for (std::string tensor, hash; std::getline(in, tensor, '\t') && std::getline(in, hash);) {
      tensors[tensor][hash].push_back(static_cast<int>(place));
      ++sizes[tensor];
    }
  }
  std::string found;
  for (const auto& [tensor, holders] : tensors) {
    found += holders.size() > 1 ? compare_holders(tensor.substr(0, tensor.find(' ')), holders,
                                                  sizes[tensor], world_ranks)
                                : "";
  }
  return found;
}

// Each finding once, of the many ranks that have it.
std::string all_findings(HostGroup& world, const std::string& mine) {
  std::vector<std::string> found;
  for (const std::string& told : world.gather("drift of replicas", mine)) {
    std::istringstream in(told);
    for (std::string line; std::getline(in, line);) {
      if (std::ranges::find(found, line) == found.end()) {
        found.push_back(line);
      }
    }
  }
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, found.size()); ++i) {
    text += concat(i == 0 ? "" : "; ", found[i]);
  }
  return found.size() > kMost ? concat(text, "; and ", found.size() - kMost, " more") : text;
}

}  // namespace

std::string replica_drift(Rank& rank) {
  Mesh& mesh = rank.mesh();
  const int world_rank = mesh.world().rank();
  const std::vector<HeldTensor> tensors = held_tensors(rank);
  const auto of_experts = [](const Parameter& p) { return p.grad_axes == kExpertReplicaAxes; };
  std::string found = drift_in(mesh.axes(kReplicaAxes), world_rank,
                               lines(tensors, [&](const Parameter& p) { return !of_experts(p); }));
  found += drift_in(mesh.axes(kExpertReplicaAxes), world_rank, lines(tensors, of_experts));
  found +=
      drift_in(mesh.axis(Axis::tensor), world_rank,
               lines(tensors, [](const Parameter& p) { return p.box.extent == p.box.global; }));
  const Ties& ties = rank.stage().ties();
  for (const int number : ties.numbers()) {
    found += drift_in(ties.stages(number), world_rank,
                      lines(tensors, [&](const Parameter& p) { return ties.number(p) == number; }));
  }
  return all_findings(mesh.host(), found);
}

std::string replica_problem(Rank& rank) {
  Mesh& mesh = rank.mesh();
  if (mesh.world().size() == 1) {
    return "one rank has no replicas";
  }
  if (rank.store().sharded().values) {
    return "weights are sharded (--zero-stage 3): no rank holds what another does";
  }
  const bool any = mesh.size(kReplicaAxes) > 1 || mesh.degree(Axis::tensor) > 1 ||
                   mesh.host().any("shared weights", !rank.stage().ties().numbers().empty());
  return any ? "" : "no rank holds what another does";
}

}  // namespace bloomery
