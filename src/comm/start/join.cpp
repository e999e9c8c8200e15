#include "comm/start/join.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/build_number.h"
#include "base/hash.h"
#include "base/log.h"
#include "comm/mpi/mpi_wire.h"
#include "comm/nccl/nccl.h"
#include "comm/start/secret.h"
#include "comm/tcp/tcp.h"

namespace bloomery {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The same for all ranks of a start, and unlike that of other starts, where nobody gives one.
int port_for(const std::string& job) {
  constexpr int kFirst = 15'000, kCount = 15'000;  // below those that systems give to anybody
  const std::string key = job.empty() ? concat("started by ", getppid()) : job;
  return kFirst + static_cast<int>(xxh3(key) % kCount);
}

// Null when the launcher was none of MPI's, or its library is not installed.
std::shared_ptr<MpiLibrary> open_mpi(const StartFacts& facts) {
  if (!facts.by_mpi) {
    return nullptr;
  }
  const bool open = facts.source.find("Open MPI") != std::string::npos;
  std::shared_ptr<MpiLibrary> mpi =
      MpiLibrary::open(open ? MpiLibrary::Abi::open_mpi : MpiLibrary::Abi::mpich);
  // A library of another kind than the launcher's sees one process.
  return mpi && mpi->rank() == facts.rank && mpi->size() == facts.size ? mpi : nullptr;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// What the first rank tells by MPI, which reaches this start's ranks alone: the secret, and where
// to meet if nobody else says it.
void agree_by_mpi(ControlOptions& options, MpiLibrary& mpi, Socket& listener) {
  std::string told;
  if (options.rank == 0) {
    if (options.port == 0 || options.host.empty()) {
      options.host = options.host.empty() ? host_name() : options.host;
      listener = listen_at(options.host, 0);
      options.port = port_of(listener);
    }
    told = concat(secret_text(random_secret()), " ", options.port, " ", options.host);
  }
  std::istringstream in(mpi_broadcast(mpi, told));
  std::string secret;
  in >> secret >> options.port >> options.host;
  options.secret = secret_from(secret);
}

// Whoever starts several machines without MPI and without us has to bring a secret.
Secret secret_without_mpi(const StartFacts& facts, int port) {
  if (!facts.secret.empty()) {
    return secret_from(facts.secret);
  }
  if (facts.one_machine) {
    return shared_secret(secrets_folder(), port);
  }
  if (facts.rank == 0) {
    Log().warning(
        "any program that reaches port ", port,
        " of this machine may join as a rank while "
        "ranks are awaited: give all of them the same BLOOMERY_SECRET, `openssl rand -hex 16`");
  }
  return {};
}

ControlOptions meeting_place(const StartFacts& facts, MpiLibrary* mpi, Socket& listener) {
  ControlOptions options{.rank = facts.rank, .size = facts.size, .host = facts.host};
  options.port = facts.port;
  options.job = facts.job.empty() ? 0 : xxh3(facts.job);
  options.build = build_number();
  if (options.host.empty() && !facts.node_file.empty()) {
    options.host = first_line(facts.node_file);
  }
  if (mpi != nullptr) {
    agree_by_mpi(options, *mpi, listener);
    return options;
  }
  check(!options.host.empty(), facts.line(), ", but not where the first rank is: set MASTER_ADDR ",
        "to its machine and MASTER_PORT to a port that is free there");
  options.port = options.port > 0 ? options.port : port_for(facts.job);
  options.secret = secret_without_mpi(facts, options.port);
  return options;
}

}  // namespace

JoinedWorld::~JoinedWorld() {
  if (mpi && control && control->world()->failed_rank() < 0) {
    control->leave();
    mpi->finalize();
  }
}

JoinedWorld join_world(const StartFacts& facts, double start_seconds) {
  JoinedWorld joined;
  joined.mpi = open_mpi(facts);
  Socket listener(facts.rank == 0 ? facts.listener : -1);
  ControlOptions options = meeting_place(facts, joined.mpi.get(), listener);
  options.listener = listener.release();
  options.start_seconds = start_seconds;
  joined.control = std::make_shared<ControlPlane>(options);
  if (facts.rank == 0 && facts.one_machine && !joined.mpi && facts.secret.empty()) {
    forget_secret(secrets_folder(), options.port);
  }
  joined.host = make_tcp_host_group(joined.control, "all", joined.control->all_ranks());
  return joined;
}

namespace {

// The control plane of all ranks, and no way for tensors.
std::unique_ptr<Communicator> make_control(const JoinedWorld& joined) {
  return make_wire_communicator(make_wire_world(joined.control), 0, joined.control->all_ranks());
}

std::unique_ptr<Communicator> make_mpi(const JoinedWorld& joined) {
  const std::shared_ptr<WireWorld> world = make_wire_world(joined.control);
  world->wire = make_mpi_wire(joined.mpi, joined.control->world(), joined.control->rank());
  return make_wire_communicator(world, 0, joined.control->all_ranks());
}

}  // namespace

std::unique_ptr<Communicator> make_world(const JoinedWorld& joined, Transport wanted,
                                         const DeviceOptions& device, double timeout_seconds) {
  joined.control->world()->set_timeout(timeout_seconds);
  if (wanted == Transport::nccl) {
    return over_nccl(make_control(joined), device);
  }
  if (wanted == Transport::automatic &&
      !joined.host->any("tensors off GPUs", device.kind != DeviceKind::cuda)) {
    const std::string problem = nccl_problem(*joined.host, device);
    if (problem.empty()) {
      return over_nccl(make_control(joined), device);
    }
    Log().warning("tensors pass through the host, not NCCL: ", problem);
  }
  const bool all_have_mpi = !joined.host->any("lack of MPI", joined.mpi == nullptr);
  check(wanted != Transport::mpi || all_have_mpi,
        "--distributed-backend mpi: no MPI library of the launcher's kind was found; start with "
        "mpirun and install libopenmpi3 or libmpich12, or give --distributed-backend tcp");
  return wanted == Transport::tcp || !all_have_mpi ? make_tcp_communicator(joined.control)
                                                   : make_mpi(joined);
}

}  // namespace bloomery
