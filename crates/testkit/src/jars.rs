//! Apache Kafka's jars, resolved by Maven once and kept in the build folder.
//!
//! ```text
//!   build/kafka/4.3.1/.lock                one test binary prepares, the others wait
//!                    /libs/*.jar, pom.xml  complete when it exists: moved here in one step
//!                    /quick-start/         a formatted empty cluster and a class archive
//!   build/java/<hash of sources>/          our own Java tools, compiled
//! ```

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::process::guarded;
use crate::scratch::build_dir;

/// A release of Apache Kafka that tests can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KafkaVersion {
    /// 4.3.1: what is current, and the only one with Java MirrorMaker 2 here.
    V4_3_1,
    /// 3.9.2: the last line before 4.0, KRaft.
    V3_9_2,
    /// 2.8.2: the last one we test with ZooKeeper and DescribeProducers.
    V2_8_2,
    /// 1.1.1: the oldest broker we mirror from, ZooKeeper.
    V1_1_1,
}

impl KafkaVersion {
    /// As Kafka writes it, `4.3.1`.
    pub fn number(self) -> &'static str {
        match self {
            Self::V4_3_1 => "4.3.1",
            Self::V3_9_2 => "3.9.2",
            Self::V2_8_2 => "2.8.2",
            Self::V1_1_1 => "1.1.1",
        }
    }

    /// Whether its brokers need ZooKeeper.
    pub fn uses_zookeeper(self) -> bool {
        matches!(self, Self::V2_8_2 | Self::V1_1_1)
    }

    fn pom(self) -> &'static str {
        match self {
            Self::V4_3_1 => include_str!("../kafka/4.3.1/pom.xml"),
            Self::V3_9_2 => include_str!("../kafka/3.9.2/pom.xml"),
            Self::V2_8_2 => include_str!("../kafka/2.8.2/pom.xml"),
            Self::V1_1_1 => include_str!("../kafka/1.1.1/pom.xml"),
        }
    }
}

/// The jars of one Kafka release, complete on disk.
#[derive(Debug, Clone)]
pub struct Jars {
    version: KafkaVersion,
    home: PathBuf,
}

impl Jars {
    /// Finds the jars of a release, and has Maven fetch them the first time.
    ///
    /// # Errors
    /// When Java, Maven or the jars can't be had; the message says what to do.
    pub fn resolve(version: KafkaVersion) -> Result<Self> {
        let home = build_dir().join("kafka").join(version.number());
        fs::create_dir_all(&home).with_context(|| format!("make folder {}", home.display()))?;
        let home = home.canonicalize().context("resolve the folder of jars")?;
        let jars = Self { version, home };
        let _alone = lock(&jars.home)?;
        let complete = fs::read_to_string(jars.libs().join("pom.xml"))
            .is_ok_and(|resolved| resolved == version.pom());
        if !complete {
            jars.fetch()?;
        }
        Ok(jars)
    }

    /// Which release.
    pub fn version(&self) -> KafkaVersion {
        self.version
    }

    /// All jars, as Java's `-cp` takes them.
    pub fn class_path(&self) -> String {
        format!("{}/*", self.libs().display())
    }

    /// A `java` command with these jars, killed when the test process ends; logs warnings to
    /// stderr.
    pub(crate) fn java(&self, jvm_options: &[&str]) -> Command {
        self.java_with_class_path(&self.class_path(), jvm_options)
    }

    /// As [`Self::java`], with a class path that has more than these jars.
    pub(crate) fn java_with_class_path(&self, class_path: &str, jvm_options: &[&str]) -> Command {
        let mut command = guarded("java");
        command
            .args(jvm_options)
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            .arg("-Dorg.slf4j.simpleLogger.showDateTime=true")
            .arg("-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS")
            .args(["-cp", class_path]);
        command
    }

    /// Folder for what is derived from these jars.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Waits until no other test process prepares something in [`Self::home`].
    pub(crate) fn lock(&self) -> Result<File> {
        lock(&self.home)
    }

    fn libs(&self) -> PathBuf {
        self.home.join("libs")
    }

    fn fetch(&self) -> Result<()> {
        let partial = self.home.join("libs.partial");
        for old in [&partial, &self.libs(), &self.home.join("quick-start")] {
            if old.exists() {
                fs::remove_dir_all(old).with_context(|| format!("remove {}", old.display()))?;
            }
        }
        fs::create_dir_all(&partial).context("make the folder of jars")?;
        let pom = partial.join("pom.xml");
        fs::write(&pom, self.version.pom()).context("write the pom")?;
        tracing::info!(
            version = self.version.number(),
            "fetching Kafka's jars with Maven"
        );
        let mut maven = Command::new("mvn");
        maven
            .args([
                "-q",
                "-B",
                "dependency:copy-dependencies",
                "-DincludeScope=runtime",
                "-f",
            ])
            .arg(&pom)
            .arg(format!("-DoutputDirectory={}", partial.display()));
        run(maven, "mvn").with_context(|| {
            let version = self.version.number();
            format!(
                "Apache Kafka {version} can't be had, and without it this test proves nothing. \
                 Needed: Java 17 and Maven (on Debian: apt-get install maven openjdk-17-jdk-headless), \
                 and once a connection to Maven Central or a mirror named in ~/.m2/settings.xml"
            )
        })?;
        fs::rename(&partial, self.libs()).context("put the jars in place")
    }
}

/// Compiles the tools in `java/` against the jars, unless that was done, and returns their folder.
pub(crate) fn compiled_tools(jars: &Jars) -> Result<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("java");
    let mut files = Vec::new();
    for entry in fs::read_dir(&sources).with_context(|| format!("read {}", sources.display()))? {
        files.push(entry.context("read the folder of Java sources")?.path());
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    hasher.write(jars.version.number().as_bytes());
    for file in &files {
        hasher.write(&fs::read(file).with_context(|| format!("read {}", file.display()))?);
    }
    let home = build_dir().join("java");
    fs::create_dir_all(&home).context("make the folder of compiled Java")?;
    let home = home
        .canonicalize()
        .context("resolve the folder of compiled Java")?;
    let classes = home.join(format!("{:016x}", hasher.finish()));

    let _alone = lock(&home)?;
    if !classes.exists() {
        let partial = home.join("partial");
        fs::remove_dir_all(&partial).ok();
        let mut compiler = Command::new("javac");
        compiler.args([
            "--release",
            "17",
            "-Xlint:all",
            "-Werror",
            "-cp",
            &jars.class_path(),
            "-d",
        ]);
        compiler.arg(&partial).args(&files);
        run(compiler, "javac")
            .context("compile the Java tools of the tests (needs a JDK, 17 or later)")?;
        fs::rename(&partial, &classes).context("put the compiled tools in place")?;
    }
    Ok(classes)
}

/// Runs a command to its end; its output is the error when it fails.
pub(crate) fn run(mut command: Command, name: &str) -> Result<()> {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => bail!("{name} can't be run: {error}"),
    };
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(
        output.status.success(),
        "{name} failed ({}):\n{out}{err}",
        output.status
    );
    Ok(())
}

fn lock(folder: &Path) -> Result<File> {
    let file = File::create(folder.join(".lock")).context("open the lock file")?;
    file.lock()
        .context("wait for the other test process that prepares Kafka")?;
    Ok(file)
}
