#include "comm/start/start.h"

#include <unistd.h>

#include <charconv>
#include <functional>
#include <optional>
#include <vector>

#include "base/error.h"
#include "comm/start/node_list.h"

namespace bloomery {
namespace {

using Text = std::optional<std::string>;
using Number = std::optional<int>;

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  Text text(const char* name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() || found->second.empty() ? Text() : found->second;
  }
  Number number(const char* name) const {
    const Text value = text(name);
    if (!value) {
      return {};
    }
    int result = 0;
    const char* const end = value->data() + value->size();
    const auto [stop, problem] = std::from_chars(value->data(), end, result);
    check(problem == std::errc() && stop == end && result >= 0, "the environment variable ", name,
          " is '", *value, "', which is no count: unset it, or start with another launcher");
    return result;
  }
  // The first of these names that is set.
  Number any_number(std::initializer_list<const char*> names) const {
    for (const char* const name : names) {
      if (const Number value = number(name)) {
        return value;
      }
    }
    return {};
  }

 private:
  const Variables& variables_;
};

// What makes a launcher's set complete.
struct Needs {
  const char *rank, *size;
};

// None when the launcher said nothing.
std::optional<StartFacts> numbers_of(const Reader& in, const char* source, const Needs& needs) {
  const Number rank = in.number(needs.rank), size = in.number(needs.size);
  if (!rank || !size) {
    return {};
  }
  check(*rank < *size, source, " says rank ", *rank, " (", needs.rank, ") of ", *size, " (",
        needs.size, "): ranks count from 0, and this one is not among them");
  StartFacts facts;
  facts.source = source;
  facts.rank = *rank;
  facts.size = *size;
  facts.secret = in.text("BLOOMERY_SECRET").value_or("");
  return facts;
}

void set_local(StartFacts& facts, Number rank, Number size) {
  facts.local_rank = rank.value_or(0);
  facts.local_size = size.value_or(rank ? facts.size : 1);
  facts.one_machine = size.value_or(0) == facts.size;
}

// Where a site says the first rank is, for launchers that do not say it themselves.
void set_address_of_site(StartFacts& facts, const Reader& in) {
  facts.host = in.text("MASTER_ADDR").value_or("");
  facts.port = in.number("MASTER_PORT").value_or(0);
  facts.node_file = in.text("PBS_NODEFILE").value_or("");
  if (facts.host.empty() && facts.local_size == facts.size) {
    facts.host = "127.0.0.1";
  }
}

std::optional<StartFacts> of_own_launcher(const Reader& in) {
  auto facts = numbers_of(in, "bloomery launch", {"BLOOMERY_RANK", "BLOOMERY_WORLD_SIZE"});
  if (facts) {
    set_local(*facts, in.number("BLOOMERY_LOCAL_RANK"), in.number("BLOOMERY_LOCAL_SIZE"));
    facts->host = in.text("BLOOMERY_HOST").value_or("127.0.0.1");
    facts->port = in.number("BLOOMERY_PORT").value_or(0);
    facts->listener = in.number("BLOOMERY_LISTENER").value_or(-1);
    check(facts->port > 0,
          "bloomery launch gave no BLOOMERY_PORT: start the ranks with it, or "
          "unset BLOOMERY_RANK and BLOOMERY_WORLD_SIZE");
  }
  return facts;
}

// torchrun, DeepSpeed's launcher, and pods on Kubernetes, where each is one rank unless a launch in
// it starts more.
std::optional<StartFacts> of_torchrun(const Reader& in) {
  const bool indexed = !in.text("RANK") && in.text("JOB_COMPLETION_INDEX") &&
                       in.number("WORLD_SIZE").value_or(1) > 1;
  auto facts = indexed ? numbers_of(in, "Kubernetes' JOB_COMPLETION_INDEX",
                                    {"JOB_COMPLETION_INDEX", "WORLD_SIZE"})
                       : numbers_of(in, "torchrun's RANK", {"RANK", "WORLD_SIZE"});
  if (!facts) {
    return {};
  }
  set_local(*facts, in.number("LOCAL_RANK"), in.number("LOCAL_WORLD_SIZE"));
  facts->pod = facts->size > 1 && !in.number("LOCAL_RANK");
  facts->host = in.text("MASTER_ADDR").value_or("");
  facts->port = in.number("MASTER_PORT").value_or(0);
  check(facts->size == 1 || (!facts->host.empty() && facts->port > 0), facts->source, " says rank ",
        facts->rank, " of ", facts->size,
        ", but MASTER_ADDR and MASTER_PORT, where the first rank is reached, are not both set");
  return facts;
}

std::optional<StartFacts> of_pals(const Reader& in) {
  auto facts = numbers_of(in, "PALS' mpiexec", {"PALS_RANKID", "PMI_SIZE"});
  if (facts) {
    set_local(*facts, in.any_number({"PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"}),
              in.any_number({"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"}));
    facts->job = in.text("PALS_APID").value_or(in.text("PBS_JOBID").value_or(""));
    facts->by_mpi = true;
    set_address_of_site(*facts, in);
  }
  return facts;
}

std::optional<StartFacts> of_open_mpi(const Reader& in) {
  auto facts =
      numbers_of(in, "Open MPI's mpirun", {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"});
  if (facts) {
    set_local(*facts, in.number("OMPI_COMM_WORLD_LOCAL_RANK"),
              in.number("OMPI_COMM_WORLD_LOCAL_SIZE"));
    facts->job = in.text("PMIX_NAMESPACE").value_or("");
    facts->by_mpi = true;
    set_address_of_site(*facts, in);
  }
  return facts;
}

std::optional<StartFacts> of_mpich(const Reader& in) {
  auto facts = numbers_of(in, "MPICH's mpiexec", {"PMI_RANK", "PMI_SIZE"});
  if (facts) {
    set_local(*facts, in.number("MPI_LOCALRANKID"), in.number("MPI_LOCALNRANKS"));
    facts->by_mpi = true;
    set_address_of_site(*facts, in);
  }
  return facts;
}

// Of a step: the script of a batch job has a SLURM_PROCID too, without having been started by srun.
std::optional<StartFacts> of_slurm(const Reader& in) {
  auto facts = in.text("SLURM_STEP_NODELIST")
                   ? numbers_of(in, "srun", {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})
                   : std::nullopt;
  if (!facts) {
    return {};
  }
  const int node = in.number("SLURM_NODEID").value_or(0);
  const int here = entry_of_counts(in.text("SLURM_STEP_TASKS_PER_NODE").value_or(""), node);
  set_local(*facts, in.number("SLURM_LOCALID"), here > 0 ? Number(here) : Number());
  facts->host = in.text("MASTER_ADDR").value_or(first_node(*in.text("SLURM_STEP_NODELIST")));
  facts->port = in.number("MASTER_PORT").value_or(0);
  facts->job = in.text("SLURM_JOB_ID").value_or("") + "." + in.text("SLURM_STEP_ID").value_or("");
  return facts;
}

// One process per machine started torchrun there, whose ranks count within it.
bool is_nested(const StartFacts& inner, const StartFacts& outer) {
  return outer.size * inner.local_size == inner.size &&
         outer.rank == (inner.rank - inner.local_rank) / inner.local_size;
}

// `second` has complete variables too. mpirun starts its own helpers with srun, so what srun says
// is no contradiction to what mpirun says.
void refuse_contradiction(const StartFacts& first, const StartFacts& second) {
  const bool same = first.rank == second.rank && first.size == second.size;
  const bool nested = is_nested(first, second) || (first.by_mpi && !second.by_mpi);
  check(same || second.size == 1 || nested, first.source, " says rank ", first.rank, " of ",
        first.size, ", but ", second.source, " says rank ", second.rank, " of ", second.size,
        ": unset the variables of the one that did not start this process");
}

}  // namespace

std::string StartFacts::line() const {
  return concat("rank ", rank, " of ", size, ", as ", source, " says");
}

Variables environment_variables() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) {
      variables[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return variables;
}

StartFacts start_facts(const Variables& variables) {
  const Reader in(variables);
  if (const auto own = of_own_launcher(in)) {
    return *own;
  }
  std::optional<StartFacts> chosen;
  for (const auto& read : {of_torchrun, of_pals, of_open_mpi, of_mpich, of_slurm}) {
    const std::optional<StartFacts> said = read(in);
    if (chosen && said) {
      refuse_contradiction(*chosen, *said);
    } else if (said) {
      chosen = said;
    }
  }
  if (!chosen) {
    const int world = in.number("WORLD_SIZE").value_or(1);
    check(world == 1, "WORLD_SIZE is ", world,
          ", but no variable gives the rank of this process: start ", world, " with mpirun -np ",
          world, ", bloomery launch -n ", world, " or torchrun, or unset WORLD_SIZE");
  }
  return chosen.value_or(StartFacts());
}

}  // namespace bloomery
