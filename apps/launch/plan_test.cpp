#include "apps/launch/plan.h"

#include <gtest/gtest.h>

#include <sstream>

#include "apps/launch/plan_checks.h"
#include "comm/error_case.h"

namespace bloomery {
namespace {

// What a case says about its surroundings; `words` are the flags behind `launch`.
struct Case {
  const char* words;
  const char* nodes;  // as placement_text() writes them, and "@K" where one node alone starts here
  const char* hostfile = "";
  Variables variables = {};
  int gpus = 8;
};

constexpr const char* kTwoHosts = "worker-0 slots=8\nworker-1 slots=8\n";
constexpr const char* kThreeHosts = "a slots=4\nb slots=2\nc slots=4\n";

StartPlan plan_of(const Case& given) {
  std::istringstream in(given.words);
  Arguments words;
  for (std::string word; in >> word;) {
    words.push_back(word);
  }
  words.push_back("pretrain");
  LaunchOptions options;
  OptionTable table;
  describe(table, options);
  table.read_flags(divide(words, given.variables).flags);
  table.finish();
  if (*given.hostfile != '\0') {
    options.hostfile = "hosts";
  }
  return plan_start(options, {given.variables, given.hostfile, given.gpus, 4});
}

std::string nodes_of(const Case& given) {
  const StartPlan plan = plan_of(given);
  return placement_text(plan.nodes) + (plan.here < 0 ? "" : concat(" @", plan.here));
}

const Variables kPod = {
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "job-0"}, {"MASTER_PORT", "23456"}};

void expect_nodes(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    EXPECT_EQ(error_of([&] { EXPECT_EQ(nodes_of(each), each.nodes) << each.words; }), "")
        << each.words;
  }
}

TEST(Plan, RanksOfThisMachine) {
  expect_nodes({
      {"", "localhost/8/0,1,2,3,4,5,6,7"},
      {"", "localhost/1/", "", {}, 0},
      {"-n 3", "localhost/3/"},
      {"--num_gpus 2", "localhost/2/0,1"},
      {"--num_gpus=-1", "localhost/8/0,1,2,3,4,5,6,7"},
      {"--num_accelerators 4", "localhost/4/0,1,2,3"},
      {"--nproc_per_node 2", "localhost/2/"},
      {"--nproc-per-node=gpu", "localhost/8/"},
      {"--nproc-per-node=cpu", "localhost/4/"},
      {"--nproc-per-node=auto", "localhost/4/", "", {}, 0},
      {"-i localhost:1,3", "localhost/2/1,3"},
      {"-e localhost:0", "localhost/7/1,2,3,4,5,6,7"},
      {"--include localhost:0,5", "localhost/2/0,5", "", {}, 0},
      {"", "localhost/2/2,5", "", {{"CUDA_VISIBLE_DEVICES", "2,5"}}},
      {"", "localhost/1/GPU-1a2b", "", {{"CUDA_VISIBLE_DEVICES", "GPU-1a2b"}}},
      {"", "localhost/1/", "", {{"CUDA_VISIBLE_DEVICES", ""}}},
      {"-n 4", "localhost/4/", "", {{"CUDA_VISIBLE_DEVICES", "2,5"}}},
      {"--standalone --nnodes=1 --nproc-per-node=2", "localhost/2/"},
  });
}

TEST(Plan, RanksOfHosts) {
  expect_nodes({
      // --num_gpus and --nproc_per_node count for each of them, -n for all together.
      {"", "worker-0/8/0,1,2,3,4,5,6,7 worker-1/8/0,1,2,3,4,5,6,7", kTwoHosts},
      {"--num_gpus 2", "worker-0/2/0,1 worker-1/2/0,1", kTwoHosts},
      {"--nproc_per_node 2", "worker-0/2/0,1 worker-1/2/0,1", kTwoHosts},
      {"-n 10", "worker-0/8/0,1,2,3,4,5,6,7 worker-1/2/0,1", kTwoHosts},
      {"--num_nodes 1 --num_gpus 1", "worker-0/1/0", kTwoHosts},
      {"--num_nodes -1", "a/4/0,1,2,3 b/2/0,1 c/4/0,1,2,3", kThreeHosts},
      {"--nnodes 2", "a/4/0,1,2,3 b/2/0,1", kThreeHosts},
      {"--include c:3,0@b", "b/2/0,1 c/2/0,3", kThreeHosts},
      {"--exclude b@a:0", "a/3/1,2,3 c/4/0,1,2,3", kThreeHosts},
      {"--include b@b:1", "b/1/1", kThreeHosts},
      {"-n 5 --exclude b", "a/4/0,1,2,3 c/1/0", kThreeHosts},
      {"", "a/4/0,1,2,3 b/2/0,1 c/4/0,1,2,3", kThreeHosts, {{"CUDA_VISIBLE_DEVICES", "7"}}},
      {"--no_ssh --node_rank 1", "a/4/0,1,2,3 b/2/0,1 c/4/0,1,2,3 @1", kThreeHosts},
      {"--elastic_training --min_elastic_nodes 2", "a/4/0,1,2,3 b/2/0,1 c/4/0,1,2,3", kThreeHosts},
  });
}

TEST(Plan, RanksOfNodesThatStartTheirOwn) {
  expect_nodes({
      {"--nnodes 2 --node_rank 1 --master_addr a --nproc_per_node 4",
       "localhost/4/ localhost/4/ @1"},
      {"--nnodes=2 --master-addr=a --nproc-per-node=1", "localhost/1/ localhost/1/ @0"},
      {"--nnodes 1:4 --nproc_per_node 2 --rdzv_backend c10d --rdzv_endpoint a:1234",
       "localhost/2/"},
      // Pods: WORLD_SIZE counts them, RANK is the pod's.
      {"", "localhost/2/0,1 localhost/2/0,1 @1", "", kPod, 2},
      {"--nproc_per_node 4", "localhost/4/ localhost/4/ @1", "", kPod},
      {"",
       "localhost/1/ localhost/1/ localhost/1/ @2",
       "",
       {{"JOB_COMPLETION_INDEX", "2"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "set-0"}},
       0},
      {"-n 2", "localhost/2/", "", kPod},
      {"--nproc_per_node 2",
       "localhost/2/",
       "",
       {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "a"}}},
      {"",
       "localhost/4/ localhost/4/ @1",
       "",
       {{"PET_NNODES", "2"},
        {"PET_NPROC_PER_NODE", "4"},
        {"PET_NODE_RANK", "1"},
        {"PET_MASTER_ADDR", "train-node-0"}}},
  });
}

TEST(Plan, RanksOfSlurm) {
  expect_nodes({
      {"--launcher slurm --nnodes 2 --num_gpus 4", "/4/ /4/"},
      {"--launcher slurm",
       "/2/ /2/ /2/",
       "",
       {{"SLURM_JOB_NUM_NODES", "3"}, {"SLURM_GPUS_ON_NODE", "2"}}},
      {"--launcher SLURM -n 6", "/3/ /3/", "", {{"SLURM_JOB_NUM_NODES", "2"}}},
  });
}

TEST(Plan, WhereRankZeroIs) {
  const StartPlan pod = plan_of({"", "", "", kPod});
  EXPECT_EQ(concat(pod.host, " ", pod.port), "job-0 23456");
  const StartPlan given = plan_of({"--nnodes 2 --node_rank 1 --master_addr a", ""});
  EXPECT_EQ(concat(given.host, " ", given.port), "a 29500");
  const StartPlan alike = plan_of({"--no_ssh --node_rank 1", "", kTwoHosts});
  EXPECT_EQ(concat(alike.host, " ", alike.port), "worker-0 29500");
  const StartPlan fixed = plan_of({"--nnodes 2 --node_rank 0 --rdzv_endpoint b:99", ""});
  EXPECT_EQ(concat(fixed.host, " ", fixed.port), "b 99");
  const StartPlan meets =
      plan_of({"--nnodes 2:5 --rdzv-backend=c10d --rdzv-endpoint=node1 --rdzv-id=7", ""});
  EXPECT_TRUE(meets.meets);
  EXPECT_EQ(concat(meets.host, " ", meets.port, " ", meets.min_nodes, " ", meets.max_nodes),
            "node1 29400 2 5");
  EXPECT_EQ(endpoint_of("[fe80::1]:5", 1), (std::pair<std::string, int>("fe80::1", 5)));
}

TEST(Plan, MistakesSayTheWayOut) {
  struct Mistake {
    const char *words, *says;
    const char* hostfile = "";
    Variables variables = {};
  };
  const std::vector<Mistake> mistakes = {
      {"--include a --exclude b", "--include and --exclude exclude each other", kThreeHosts},
      {"--include a --num_gpus 1", "choose the slots already", kThreeHosts},
      {"--include a --num_nodes 1", "choose the slots already", kThreeHosts},
      {"--num_gpus 2 --nproc_per_node 2", "give one of them"},
      {"-n 2 --num_gpus 2", "-n counts the ranks of all nodes"},
      {"--num_gpus 0", "leaves no rank"},
      {"--num_gpus 9", "this machine has 8"},
      {"--num_gpus 3", "b has 2 slots", kThreeHosts},
      {"--nproc_per_node many", "neither a number above 0 nor gpu, cpu or auto"},
      {"--include d:0", "there is no host d; the hosts are a, b, c", kThreeHosts},
      {"--include b:2", "b has no slot 2; its slots are 0, 1", kThreeHosts},
      {"--include b:x", "'x' is not the number of a slot", kThreeHosts},
      {"--include b:", "'' is not the number of a slot", kThreeHosts},
      {"--include a:0:1", "is not HOST or HOST:SLOT,SLOT", kThreeHosts},
      {"--exclude a@b@c", "leaves no slot", kThreeHosts},
      {"--exclude localhost:8", "localhost has no slot 8"},
      {"--nnodes 4", "hosts has 3 hosts", kThreeHosts},
      {"--nnodes 2-3", "neither a number of nodes nor MIN:MAX"},
      {"--nnodes 3:2", "contradict each other", kThreeHosts},
      {"-n 11", "the hosts have 10 slots", kThreeHosts},
      {"--node_rank 1", "add --no_ssh", kThreeHosts},
      {"--no_ssh", "give its --node_rank", kThreeHosts},
      {"--no_ssh --node_rank 3", "is not among the 3 nodes", kThreeHosts},
      {"--nnodes 1:3 --no_ssh_check", "give one number of nodes", kThreeHosts},
      {"--nnodes 2", "nothing says where they are"},
      {"--nnodes 2 --node_rank 2 --master_addr a", "node 2 is not among the 2 nodes"},
      {"--node_rank 1", "is not among one node"},
      {"--nnodes 1:2 --master_addr a", "needs a way to know which nodes are there"},
      {"--nnodes 2 --rdzv_backend c10d", "needs --rdzv_endpoint HOST:PORT"},
      {"--nnodes 2 --rdzv_backend c10d --rdzv_endpoint a:0", "not 0"},
      {"--nnodes 2 --rdzv_backend c10d --rdzv_endpoint a:b", "is not HOST:PORT"},
      {"--rdzv_backend c10d --rdzv_endpoint a:1", "leave out --rdzv_backend c10d", kTwoHosts},
      {"--rdzv_backend etcd", "--rdzv-backend"},
      {"--standalone --nnodes 2", "--standalone is for one node"},
      {"--module --no_python", "contradict each other"},
      {"--output-folder x --redirects 3", "give one of them"},
      {"--launcher openmpi --output-folder x", "--launcher_args", kTwoHosts},
      {"--launcher slurm", "run it in a job"},
      {"", "2 nodes, but nothing says", "", {{"RANK", "0"}, {"WORLD_SIZE", "2"}}},
  };
  for (const Mistake& each : mistakes) {
    const std::string error = error_of([&] {
      plan_of({each.words, "", each.hostfile, each.variables});
    });
    EXPECT_TRUE(contains(error, each.says)) << each.words << ": " << error;
  }
}

TEST(Plan, ChosenDevicesOverruleTheVariableWithANote) {
  const StartPlan plan = plan_of({"--num_gpus 2", "", "", {{"CUDA_VISIBLE_DEVICES", "6,7"}}});
  EXPECT_EQ(placement_text(plan.nodes), "localhost/2/0,1");
  ASSERT_EQ(plan.notes.size(), 1);
  EXPECT_TRUE(contains(plan.notes[0], "CUDA_VISIBLE_DEVICES=6,7 counts for nothing"));
}

TEST(Plan, OfARangeThoseThatAnswer) {
  const Case range = {"--nnodes 1:2", "", kThreeHosts};
  StartPlan plan = plan_of(range);
  keep_answering(plan, {false, true, true});
  EXPECT_EQ(placement_text(plan.nodes), "b/2/0,1 c/4/0,1,2,3");
  plan = plan_of(range);
  keep_answering(plan, {true, true, true});
  EXPECT_EQ(placement_text(plan.nodes), "a/4/0,1,2,3 b/2/0,1");
  plan = plan_of(range);
  EXPECT_TRUE(contains(error_of([&] {
                         keep_answering(plan, {false, false, false});
                       }),
                       "0 of at least 1 nodes answer; these do not: a, b, c"));
}

TEST(Plan, PlacementsComeBack) {
  const std::string text = "node1/2/0,3 10.0.0.2/4/ node3/1/GPU-1a";
  EXPECT_EQ(placement_text(placement_from(text)), text);
  EXPECT_TRUE(contains(error_of([] { placement_from("node1"); }), "HOST/RANKS/DEVICES"));
}

TEST(LaunchOptions, TheCommandBeginsBehindTheFlags) {
  const auto first = [](const Arguments& words) { return divide(words, {}).command; };
  const Arguments command = {"pretrain", "--lr", "1"};
  for (Arguments words : std::vector<Arguments>{{"-n", "2"},
                                                {"--save_pid"},
                                                {"--no_ssh", "--force_multi"},
                                                {"-H", "hosts", "-i", "a:0"},
                                                {"--nnodes=2", "--standalone"},
                                                {"--module"},
                                                {"-m"},
                                                {"--max-restarts", "3", "--"},
                                                {"-t", "3", "--no-python"}}) {
    words.insert(words.end(), command.begin(), command.end());
    EXPECT_EQ(first(words), command) << words[0];
  }
  EXPECT_EQ(divide({"-np", "2", "-m", "x"}, {}).flags, (Arguments{"--num-ranks=2", "--module"}));
  EXPECT_EQ(divide({"--launcher_args", "-t 5", "x"}, {}).flags,
            (Arguments{"--launcher_args=-t 5"}));
  EXPECT_EQ(divide({"--launcher-args", "-n", "-n", "2"}, {}).flags,
            (Arguments{"--launcher-args=-n", "--num-ranks=2"}));
}

}  // namespace
}  // namespace bloomery
