# Copies libraries of Maven, with what they depend on, into a directory.
#   libraries.sh DIR PROJECT-DIR SETTINGS PLUGIN-GOAL [JVM-OPTION...]
# Maven is started as its own script would, which reads settings that need not be here.
set -eu
dest=$1 project=$2 settings=$3 goal=$4
shift 4
home=$(dirname "$(dirname "$(readlink -f "$(command -v mvn)")")")
# Maven's own file of this name loads a directory of its settings.
conf=$project/m2.conf
printf '%s\n' 'main is org.apache.maven.cli.MavenCli from plexus.core' '[plexus.core]' \
  'optionally ${maven.home}/lib/ext/*.jar' 'load ${maven.home}/lib/*.jar' >"$conf"
# Wherever there is a network, there is a proxy.
proxy=${LLMSANDBOX_PROXY:-127.0.0.1:9}
sed -e "s|PROXY_HOST|${proxy%:*}|" -e "s|PROXY_PORT|${proxy##*:}|" "$settings" >"$project/settings.xml"
cd "$project"
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData "$@" -classpath "$(echo "$home"/boot/plexus-classworlds*.jar)" \
  "-Dclassworlds.conf=$conf" "-Dmaven.home=$home" "-Dmaven.conf=$project" "-Dmaven.multiModuleProjectDirectory=$project" \
  -Dorg.slf4j.simpleLogger.showThreadName=false -Dorg.slf4j.simpleLogger.showLogName=false -Dorg.slf4j.simpleLogger.levelInBrackets=true \
  "-Dmaven.repo.local=$project/repository" "-Duser.home=$project" org.codehaus.plexus.classworlds.launcher.Launcher \
  --batch-mode --no-transfer-progress --settings "$project/settings.xml" --global-settings "$project/settings.xml" \
  "-DoutputDirectory=$dest/jars" -DincludeScope=runtime -Dmdep.prependGroupId=true "$goal"
