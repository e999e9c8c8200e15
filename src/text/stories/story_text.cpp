#include "text/stories/story_text.h"

namespace bloomery {
namespace {

constexpr std::string_view kText = R"(
rule story
  <opening> <outing> <adventure> <ending>

# ---- who and with whom

table child: name / He / he / his / girl
  Mia / She / she / her / girl
  Lily / She / she / her / girl
  Anna / She / she / her / girl
  Nora / She / she / her / girl
  Ella / She / she / her / girl
  Tom / He / he / his / boy
  Ben / He / he / his / boy
  Max / He / he / his / boy
  Leo / He / he / his / boy
  Finn / He / he / his / boy

table animal: name / search / voice
  fox / sniffed along the path / barked
  owl / looked down from above / hooted
  bear / pushed the bushes aside / growled
  mouse / crept through the leaves / squeaked
  frog / hopped from stone to stone / croaked
  crow / circled over the trees / cawed
  goat / looked behind every fence / bleated
  otter / dived into the stream / chirped

rule opening
  Once upon a time there lived {hero:child.name}, a <trait> {hero.girl} who <life>.

rule life
  4*loved <love>
  grew up by the (sea|river|lake|mountains)
  came from a (small|quiet|pretty) (village|town|valley|island)

rule trait
  (kind|brave|clever|cheerful|curious|gentle|shy|dreamy)

rule love
  (songs|stories|snow|music|dancing|riddles|painting|pancakes|stars)

rule outing
  One <weather> <daytime>, {hero.name} <walked> to the <place> with {hero.his}
    <dear> friend, the <nature> {friend:animal.name}.

rule weather
  (sunny|windy|warm|bright|misty|cloudy)

rule daytime
  (morning|afternoon|day|evening)

rule walked
  (walked|went|ran|skipped|hurried|wandered)

rule place
  (meadow|forest|beach|hill|farm|garden|pond|market)

rule dear
  (best|good|dear|old|new)

rule nature
  (wise|funny|young|tiny|fluffy|noisy|sleepy|proud)

rule color
  (red|blue|green|yellow|white|silver)

# ---- what happens

rule adventure
  <lost>
  <stuck>
  <storm>
  <hungry>
  <seed>
  <stray>

table toy: name / play
  ball / bounced
  doll / danced
  drum / boomed
  book / shone
  bell / rang
  boat / floated

rule lost
  Soon {hero.he} (saw|noticed) that {hero.his} <color> {toy:toy.name} was (gone|missing|lost).
    "Where is my {toy.name}?" (cried|asked|sobbed) {hero.name}. The {friend.name}
    {friend.search} and (found|spotted) the {toy.name} <hidden>. It {toy.play} (in the sun|like
    new).

rule hidden
  under a (leaf|bench|bush)
  behind a (rock|ladder|fountain)
  beside a (puddle|mushroom|molehill)

table flyer: name
  kite
  balloon
  hat
  scarf
  ribbon
  feather

rule stuck
  Then the wind (blew|carried|swept) {hero.his} <color> {flyer:flyer.name} into a
    (tall|high|crooked) (oak|pine|birch). "Oh no, my {flyer.name}!" (shouted|cried|called)
    {hero.name}. "Leave it to me," {friend.voice} the {friend.name} and shook the tree until the
    {flyer.name} (came|fell|sailed) down (safely|slowly|at last).

table shelter: name / inside
  barn / on the warm straw
  cave / around a little fire
  hut / at a wooden table
  tent / under a thick blanket
  tower / by a round window

rule storm
  Suddenly (dark|heavy|black) clouds came and it began to (rain|hail|snow). "Quick, into
    the {shelter:shelter.name}!" {friend.voice} the {friend.name}. They sat {shelter.inside} and
    (told jokes|sang songs|played cards|drank tea) until (the sun came out|a rainbow
    appeared). It was (cosy|lovely|dry) in the {shelter.name}.

table food: name / taste
  cake / sweet
  pie / crisp
  cookie / crunchy
  apple / juicy
  pear / soft
  bun / fresh

rule hungry
  After a while they were (very|rather|quite) hungry, but {hero.name} had only one
    {food:food.name}. {hero.He} (broke|cut|split) it in two and gave the (bigger|better)
    (half|piece|part) to the {friend.name}. "What a {food.taste} {food.name}!"
    {friend.voice} the {friend.name} (happily|loudly|politely).

table plant: name / fruit
  rose / tea
  melon / salad
  pumpkin / pie
  cherry / juice
  bean / soup
  tomato / sauce

rule seed
  There they found a (little|round|strange|shiny) seed and planted it (by a fence|near a
    path|under an oak). {hero.name} watered it every (day|week|night). By (spring|summer|autumn)
    it was a (huge|giant|splendid) {plant:plant.name}. "My {plant.name}!"
    (cheered|laughed|whispered) {hero.name}, and the {friend.name} made {plant.fruit} for everyone.

table baby: name / cry / mother
  lamb / Baa / sheep
  duckling / Quack / duck
  kitten / Meow / cat
  puppy / Woof / dog
  calf / Moo / cow
  piglet / Oink / pig

rule stray
  Near a (gate|well|wall) they met a (sad|lonely|lost|frightened) {baby:baby.name}.
    "{baby.cry}, where is my mother?" it (asked|cried|sniffed). "We will help you,"
    (said|promised) {hero.name}. The {friend.name} {friend.search} and found the {baby.mother}
    (behind a hedge|by a brook|in a field).

# ---- how it ends

rule ending
  That night {hero.name} dreamed of (flying|dragons|pirates|treasure|candy|the {friend.name}).
  From that day on, {hero.name} and the {friend.name} were <together>.
  So they (went|walked|danced) home and ate (honey|cheese|noodles|jam|porridge|waffles) together.
  "What a (wonderful|great|funny|beautiful) day!" said {hero.name}, and the {friend.name}
    (smiled|nodded|agreed).
  And they are still (laughing|playing|singing|dancing) today.

rule together
  never apart
  always happy
  the (best|closest|happiest) of friends
)";

}  // namespace

std::string_view story_text() { return kText; }

}  // namespace bloomery
