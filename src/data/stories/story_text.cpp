#include "data/stories/story_text.h"

namespace bloomery {
namespace {

constexpr std::string_view kText = R"(
rule story
  <opening> <outing> <adventure> <ending>

# ---- who, where, with whom

table child: name / He / he / him / his / girl
  Mia / She / she / her / her / girl
  Lily / She / she / her / her / girl
  Anna / She / she / her / her / girl
  Rosa / She / she / her / her / girl
  Nora / She / she / her / her / girl
  Ella / She / she / her / her / girl
  Ida / She / she / her / her / girl
  Tom / He / he / him / his / boy
  Ben / He / he / him / his / boy
  Max / He / he / him / his / boy
  Leo / He / he / him / his / boy
  Sam / He / he / him / his / boy
  Finn / He / he / him / his / boy
  Hugo / He / he / him / his / boy

table animal: name / search / fetch / voice
  fox / sniffed along the path / jumped from branch to branch / barked
  owl / looked down from the sky / flew up to the top / hooted
  bear / pushed the bushes aside / shook the trunk / growled
  mouse / crept through the leaves / scurried up the bark / squeaked
  frog / hopped from stone to stone / leapt higher than ever / croaked
  rabbit / peeked into every burrow / stood on a tall rock / giggled
  squirrel / asked all the other squirrels / climbed the trunk / chattered
  hedgehog / rolled through the moss / poked it with a stick / snuffled
  crow / circled over the fields / flapped up in a blink / cawed
  goat / looked behind every fence / stood on two legs / bleated
  otter / dived into the stream / splashed it loose with water / chirped
  badger / dug in the soft earth / built a ladder of twigs / grunted

table place: name / there / hidden
  meadow / in the meadow / (under a daisy|beside a molehill|in the long grass)
  forest / in the forest / (under a fern|beside a mushroom|in a hollow log)
  beach / on the beach / (under a shell|beside a sandcastle|in a rock pool)
  hill / on the hill / (under a thistle|beside a boulder|in a rabbit hole)
  pond / at the pond / (under a lily pad|beside a willow|in the muddy reeds)
  farm / on the farm / (under a wheelbarrow|beside a barrel|in a pile of hay)
  garden / in the garden / (under a cabbage|beside a beanpole|in a watering can)
  orchard / in the orchard / (under a plum tree|beside a beehive|in a basket of pears)
  market / at the market / (under a bench|beside a fountain|in a box of lemons)
  mill / at the mill / (under a ladder|beside a millstone|in a sack of flour)

rule opening
  <once> there lived {hero:child.name}, a <trait> {hero.girl} who loved <love>.

rule once
  3*Once upon a time
  Long ago
  In a <size> (village|town|valley|castle)
  By the (sea|river|lake|mountains)
  Behind (seven|nine|twelve) (hills|forests|rivers)
  Not far from here

rule size
  (small|quiet|sleepy|pretty)

rule trait
  (kind|brave|clever|cheerful|curious|gentle|merry|shy|patient|dreamy)

rule love
  (songs|stories|snow|music|dancing|puzzles|painting|riddles|swimming|sunshine|pancakes|stars)

rule outing
  One <weather> <daytime>, {hero.he} <walked> to the {place:place.name} with {hero.his}
    <dear> friend, the <nature> {friend:animal.name}.

rule weather
  (sunny|windy|warm|bright|misty|frosty|golden|cloudy)

rule daytime
  (morning|afternoon|day|evening)

rule walked
  (walked|went|ran|skipped|hurried|wandered|strolled|marched)

rule dear
  (best|good|dear|old|new)

rule nature
  (wise|funny|young|tiny|fluffy|noisy|sleepy|polite|proud|jolly)

rule color
  (red|blue|green|yellow|purple|orange|white|silver)

# ---- what happens

rule adventure
  <lost>
  <stuck>
  <broken>
  <storm>
  <hungry>
  <seed>
  <dark>
  <stray>

table toy: name / play
  ball / bounced
  doll / danced
  drum / boomed
  whistle / tooted
  book / shone
  bell / rang
  boat / floated
  button / gleamed
  key / sparkled
  marble / rolled

rule lost
  Soon {hero.he} (saw|noticed) that {hero.his} <color> {toy:toy.name} was (gone|missing|lost).
    "Where is my {toy.name}?" (cried|asked|sobbed|wailed) {hero.name}. The {friend.name}
    {friend.search} and (found|spotted|discovered) the {toy.name} {place.hidden}. It {toy.play}
    (as well as ever|in the sun|like new).

table flyer: name
  kite
  balloon
  hat
  scarf
  ribbon
  feather
  letter
  umbrella

rule stuck
  Then the wind (blew|tossed|carried|swept) {hero.his} <color> {flyer:flyer.name} into a
    (tall|high|crooked) (oak|pine|birch|maple). "Oh no, my {flyer.name}!" (shouted|cried|called)
    {hero.name}. "Leave it to me," {friend.voice} the {friend.name}, who {friend.fetch} until the
    {flyer.name} (came|fell|sailed|tumbled) down (safely|slowly|at last).

table cart: name / part
  wagon / wheel
  sled / runner
  bicycle / pedal
  scooter / handle
  guitar / string
  lantern / glass
  flute / mouthpiece
  raft / mast

rule broken
  But the {cart:cart.part} of {hero.his} <color> {cart.name} (broke|snapped|cracked|came off) on
    the way. {hero.name} (sighed|frowned|sat down|wept). "We can mend it with some
    (glue|wax|wool|tape|moss|rope)," {friend.voice} the {friend.name}. They worked (for an hour|all
    day long|until noon), and then the {cart.name} was (as good as new|better than before).

table shelter: name / inside
  barn / on the warm straw
  cave / around a little fire
  hut / at a wooden table
  tent / under a thick blanket
  tower / by a round window
  stable / next to a friendly horse

rule storm
  Suddenly (dark|heavy|black) clouds came and it began to (rain|hail|snow|thunder). "Quick, into
    the {shelter:shelter.name}!" {friend.voice} the {friend.name}. They sat {shelter.inside} and
    (told jokes|sang songs|played cards|drank tea) until (the sun came out|a rainbow
    appeared|birds sang again). It was (cosy|lovely|dry|peaceful) in the {shelter.name}.

table food: name / taste
  cake / sweet
  pie / crisp
  cookie / crunchy
  apple / juicy
  pear / soft
  sandwich / tasty
  bun / fresh
  carrot / crunchy

rule hungry
  After a while they were (very|rather|quite) hungry, but {hero.name} had only one
    {food:food.name}. {hero.He} (broke|cut|split) it in two and gave the (bigger|larger|better)
    (half|piece|part) to the {friend.name}. "What a {food.taste} {food.name}!"
    {friend.voice} the {friend.name}. The {food.name} made them (happy|glad|merry).

table plant: name / fruit
  rose / tea
  melon / salad
  sunflower / oil
  pumpkin / pie
  strawberry / jam
  cherry / juice
  bean / soup
  tomato / sauce

rule seed
  There they found a (little|round|strange|shiny) seed and planted it {place.there}. {hero.name}
    watered it every (day|week|night), and the {friend.name} (guarded it|sang to it|kept it warm).
    By (spring|summer|autumn) it was a (huge|giant|splendid|perfect) {plant:plant.name}. "My
    {plant.name}!" (cheered|laughed|whispered) {hero.name}, and soon there was {plant.fruit} for
    everyone.

table light: name / way
  moon / over the fields
  candle / along the lane
  star / across the bridge
  lamp / down the road
  lighthouse / along the shore
  firefly / through the trees
  bonfire / past the church
  comet / up the valley

rule dark
  When (night|darkness|fog) came, they could not find the way home. "I am (scared|afraid|cold|lost),"
    whispered {hero.name}. "Look, there is the {light:light.name}," {friend.voice} the {friend.name}. They
    followed the {light.name} {light.way}, (step by step|hand in hand|side by side), and the
    {light.name} (led|brought|guided) them back.

table baby: name / cry / mother
  lamb / Baa / sheep
  duckling / Quack / duck
  kitten / Meow / cat
  puppy / Woof / dog
  calf / Moo / cow
  piglet / Oink / pig
  chick / Peep / hen
  foal / Neigh / mare

rule stray
  Near a (gate|well|tree|wall) they met a (sad|lonely|lost|frightened) {baby:baby.name}.
    "{baby.cry}, where is my mother?" it (asked|cried|sniffed). "We will help you,"
    (said|promised|answered) {hero.name}. The {friend.name} (looked around|followed the tracks|asked
    everyone) and found the {baby.mother} (behind a hedge|by a brook|in a field). The {baby.name} (jumped|danced|beamed) for joy.

# ---- how it ends

rule ending
  That night {hero.name} dreamed of <dream>.
  From that day on, {hero.name} and the {friend.name} were <together>.
  So they (went|walked|danced) home and ate <treat> together.
  "What a <great> day!" said {hero.name}, and the {friend.name} (smiled|nodded|agreed).
  And they are still (laughing|playing|singing|dancing) today.

rule dream
  (flying|dragons|pirates|treasure|castles in the air|candy|the {friend.name})

rule together
  never apart
  always happy
  the (best|closest|happiest) of friends

rule treat
  (soup|honey|cheese|noodles|jam|porridge|waffles)

rule great
  (wonderful|great|funny|strange|beautiful|marvelous)
)";

}  // namespace

std::string_view story_text() { return kText; }

}  // namespace bloomery
