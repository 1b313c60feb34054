# Chinese texts of the command line. The English ones are the comments in src/args.rs.
# A command is `cmd-name`, its examples `cmd-name-examples`, an argument `cmd-name-argument`, or `arg-argument` where several commands share it.

arg-help = 显示帮助
arg-version = 显示版本号

cmd-glassbox = 打开黑箱：在 CPU 上运行、观察、测试、解释语言模型
cmd-glassbox-examples =
    从这里开始：
      glassbox demo                                试一试：一分钟得到结论和报告
      glassbox inspect "一段文字" --html look.html   模型在看什么，写成网页
      glassbox test evidence -m model.gguf         正确资料放在任何位置，模型都能找到吗？

    退出码：
        0  所有门槛通过
      100  有门槛未通过
      101  有门槛证据不足（在 --strict 下）
      102  失败的提问多于测试集允许的数量
        4  没有选中任何内容
        2  用法、配置，或无法读取的输入
        1  程序或磁盘故障
      130  被中断；用 `--resume last` 继续

cmd-generate = 续写一段文字，或以对话方式回答
cmd-generate-examples =
    示例：
      glassbox generate --chat "戈铎国的首都是什么？"                内置模型知道的地方
      glassbox generate -m model.gguf --chat --system "请简短回答。" "天空为什么是蓝色的？"
      glassbox generate -m model.gguf --temperature 0.8 --top-p 0.95 --seed 7 "很久很久以前"
      cat notes.txt | glassbox generate - --stop "###" --json
cmd-generate-text = 要续写的文字；`-` 表示读取标准输入
cmd-generate-chat = 以对话方式提问，使用模型自带的模板
cmd-generate-max_tokens = 最多生成多少个词元
cmd-generate-temperature = 用它除分数；0 总是取概率最大的词元
cmd-generate-top_k = 只保留概率最大的 K 个词元；默认全部保留
cmd-generate-top_p = 只保留合计概率达到 P 的最可能词元
cmd-generate-min_p = 去掉概率低于最大概率 P 倍的词元
cmd-generate-repetition_penalty = 对出现过的词元的惩罚；1 表示不惩罚
cmd-generate-seed = 随机数种子：种子相同，文字相同
cmd-generate-stop = 遇到这段文字就结束回答；可以给出多次
cmd-generate-ignore_end = 模型说完一轮后仍继续
cmd-generate-context = 提示和回答的总容量；默认按需要，但不超过模型的设计长度
cmd-generate-json = 输出一个 JSON 文档，而不是文字

cmd-inspect = 显示内部发生了什么：词元、下一个词元、注意力、熵；或保存激活值
cmd-inspect-examples =
    示例：
      glassbox inspect "一段文字"                               在终端里看词元、下一个词元和熵
      glassbox inspect -m model.gguf "一段文字" --html look.html --heads 3.5,4.0
      glassbox inspect -m folder --ids 1,5,9 --json | jq .next
      glassbox inspect "法国的首都是" --layers --answer 巴黎 --against 罗马
      glassbox inspect "一段文字" --site 'logits,blocks.*.attn.pattern' --out acts.safetensors
cmd-inspect-text = 提示；`-` 表示读取标准输入
cmd-inspect-ids = 用词元编号代替文字，如 1,5,9；不需要分词器
cmd-inspect-chat = 把文字写成对话，使用模型自带的模板
cmd-inspect-context = 提示最多有多少个词元；默认为模型的设计长度
cmd-inspect-html = 写出一个独立的网页
cmd-inspect-png = 写出注意力图的图片
cmd-inspect-svg = 写出同一张图的矢量版
cmd-inspect-json = 在标准输出写一个 JSON 文档
cmd-inspect-site = 要保存的观察点，如 logits,blocks.*.attn.pattern（`glassbox sites` 列出全部）
cmd-inspect-out = 把观察点保存到哪里，safetensors 格式
cmd-inspect-out_limit_mib = 超过这么多 MiB 就拒绝保存
cmd-inspect-layers = 最后一个词元之后每一层会怎样回答，以及模型的各部分给这个答案加了多少
cmd-inspect-evidence = 答案从何而来：提示的每个部分得到多少注意力，由此给答案加了多少，以及答案是否离不开它
cmd-inspect-span = 提示的一个部分，原文照抄且只出现一次，写作 TEXT 或 NAME=TEXT；不给则每行是一个部分
cmd-inspect-answer = 与 --layers 或 --evidence 合用：要看的答案；默认是模型自己的答案
cmd-inspect-against = 与 --layers 或 --evidence 合用：另一个答案；显示各部分对两者之差的贡献
cmd-inspect-top = 列出多少个下一个词元
cmd-inspect-heads = 要画的注意力头，如 3.5,4.0（层.头）；默认选最有信息的
cmd-inspect-max_heads = 最多画多少个注意力头

cmd-score = 给出各段文字的概率：每个词元在其前文之后的概率
cmd-score-examples =
    示例：
      glassbox score --context "法国的首都是" 巴黎 罗马              模型认为哪个更可能？
      glassbox score -m model.gguf --chat --context "二加二等于几？" 四 五
      glassbox score -m model.gguf - < text.txt                   模型能多好地预料一段文字？

    对数为自然对数，取自原始分布。上文末尾的空白算在续文里，因为词元以它开头；若两段文字会共用一个词元，就分开切分，
    并在表中注明。
cmd-score-context = 各段续文之前的文字；没有它，第一个词元就没有概率，除非模型以 BOS 开头
cmd-score-chat = 上文是对话中用户的话，续文是回答
cmd-score-continuations = 要评分的文字；只给 `-` 表示把标准输入读作一段文字
cmd-score-json = 输出一个 JSON 文档，包含每个词元

cmd-serve = 按 OpenAI 接口向客户端提供一个模型
cmd-serve-examples =
    示例：
      glassbox serve                                             内置模型，地址 http://127.0.0.1:4747/v1
      glassbox serve -m model.gguf --name my-model --slots 8
      glassbox test evidence -m "http://127.0.0.1:4747/v1#specimen"   在另一个终端里用测试集测试它
      curl http://127.0.0.1:4747/v1/completions -H "Content-Type: application/json" -d '{"{"}"prompt": "Once", "max_tokens": 8{"}"}'

    提供 POST /v1/chat/completions 和 /v1/completions（一次给出或流式，可带对数概率），GET /v1/models，GET /health。
    不支持的字段会被拒绝，绝不悄悄丢掉。无论同时还有什么请求，一个回答的每一位都相同。
cmd-serve-host = 监听的地址；超出本机时必须设密钥
cmd-serve-port = 端口；0 表示任取一个空闲端口
cmd-serve-name = 客户端用来指名模型的名字；默认是文件或文件夹的名字
cmd-serve-context = 提示与回答合计的词元数；默认是模型设计的长度，最多 8192
cmd-serve-slots = 同时生成多少个回答
cmd-serve-queue = 此外最多有多少个回答排队；再多就以 429 拒绝
cmd-serve-key_env = 存放密钥的环境变量，客户端必须发送它；未设置则不要求密钥
cmd-serve-json = 以一个 JSON 文档给出地址

cmd-embed = 用编码器给出文字的向量，以及它们有多相似
cmd-embed-examples =
    示例：
      glassbox embed folder "一只猫" "一只小猫" "一张发票"     三段文字有多相似
      glassbox embed org/name "一段文字" --json | jq .embeddings[0].vector
      glassbox embed model.gguf - < lines.txt                     每行一段文字

    所有词元的向量怎样合成一个向量，由模型自己的文件规定（modules.json，或 GGUF 文件里的 pooling）。
cmd-embed-model = 编码器：Hugging Face 文件夹、.gguf 文件，或 Hugging Face 缓存中的 org/name
cmd-embed-texts = 各段文字；只给 `-` 表示读取标准输入，每行一段
cmd-embed-json = 输出一个 JSON 文档：带全部数字的向量、词元和相似度矩阵

cmd-test = 用一个测试集测试一个模型，给出结论
cmd-test-examples =
    示例：
      glassbox test evidence                          用内置测试集测试内置模型
      glassbox test suites/evidence.yaml -m model.gguf -n 40
      glassbox test evidence -m model.gguf --resume last
      glassbox test evidence -m http://127.0.0.1:8080/v1#model -j 4    任何 OpenAI 兼容的接口
      glassbox test evidence -m recorded:last         重新评判一次运行的回答
      glassbox test evidence --strict --quiet         用于 CI：看退出码

    退出码：
        0  所有门槛通过
      100  有门槛未通过
      101  有门槛证据不足（在 --strict 下）
      102  失败的提问多于测试集允许的数量
        4  没有选中任何内容
        2  用法、配置，或无法读取的输入
        1  程序或磁盘故障
      130  被中断；用 `--resume last` 继续
cmd-test-api = 以对话方式提问，或让基础模型续写文字
cmd-test-api_key_env = 存放密钥的环境变量；名字为空则不发送密钥
cmd-test-allow_plain_http = 允许不加密地把密钥发给另一台机器
cmd-test-concurrency = 同时最多有多少个请求
cmd-test-requests_per_minute = 每分钟最多多少个请求
cmd-test-tokens_per_minute = 每分钟最多多少个词元，提示和回答合计
cmd-test-attempts = 失败可能好转时，一个回答最多请求多少次
cmd-test-first_token_timeout = 等待第一个词元的秒数
cmd-test-token_timeout = 等待下一个词元的秒数
cmd-test-answer_timeout = 等待整个回答的秒数
cmd-test-budget_requests = 用完这么多请求就停下；运行可以继续
cmd-test-budget_tokens = 用完这么多词元就停下；运行可以继续
cmd-test-budget_money = 用完这么多钱就停下；运行可以继续
cmd-test-price = 每百万词元的价格，提示和回答，例如 0.5,1.5
cmd-test-suite = 测试集文件，或内置测试集的名字：evidence、order、rewrite、memory、length、conflict

cmd-demo = 用内置测试集测试内置模型

cmd-report = 不用模型，重新生成一次运行的报告
cmd-report-examples =
    示例：
      glassbox report last --lang zh-CN
cmd-report-run = 运行的文件夹或名字；`last` 表示最新的一次

cmd-models = 有哪些模型，模型里有什么，怎样取得模型
cmd-list = 内置模型、本文件夹中的模型、Hugging Face 缓存中的模型
cmd-list-folder = 也在这个文件夹里找模型
cmd-list-json = 输出一个 JSON 文档
cmd-pull = 从 Hugging Face 下载一个模型到缓存；中断后可以接着下载
cmd-pull-examples =
    示例：
      glassbox models pull org/name                 配置、分词器和 safetensors 权重
      glassbox models pull org/name@v1.0            某个分支、标签或提交
      glassbox models pull org/name:Q4_K_M          仓库里的某一个 GGUF 文件

    环境变量：HF_ENDPOINT（镜像站）、HF_TOKEN、HF_HOME、HF_HUB_CACHE、HF_HUB_OFFLINE、HTTPS_PROXY、NO_PROXY
cmd-pull-named = org/name、org/name@版本 或 org/name:量化方式
cmd-pull-json = 输出一个 JSON 文档：路径、版本、各文件的字节数
cmd-pull-quiet = 不显示进度和说明
cmd-info = 一个模型的架构、大小、存储类型和分词器
cmd-info-json = 输出一个 JSON 文档

cmd-quantize = 把模型另存为 GGUF，换一种存储类型
cmd-quantize-examples =
    示例：
      glassbox quantize folder --to q8_0 -o model-q8_0.gguf
      glassbox quantize model.gguf --to q4_k -o model-q4_k.gguf --json | jq .types
      glassbox quantize specimen --to int4-per-channel -o int4.gguf    模拟，用于比较
cmd-quantize-model = .gguf 文件、Hugging Face 文件夹、Hugging Face 缓存中的 org/name，或 `specimen`
cmd-quantize-to = 所有矩阵变成的类型；per-channel 两种是模拟的，以 F32 存储
cmd-quantize-out = 要写的文件；已有的文件在一切顺利之后才被替换
cmd-quantize-json = 一个 JSON 文档：按类型列出张量、字节和误差

cmd-bench = 测量速度和内存，数字的含义与 llama-bench 相同
cmd-bench-examples =
    各个列表的每一种组合都会测量，与 llama-bench 相同：`pp512` 一次读入 512 个词元并算出最后一个的分数，
    `tg64` 逐个读入 64 个词元；`@ d2048` 表示开始计时之前缓存里已有 2048 个词元。

    示例：
      glassbox bench -m model.gguf
      glassbox bench -m model.gguf -p 512,2048 -n 64 -d 0,2048 -t 1,2 -r 5
      glassbox bench -m model.gguf -p 0 -n 64 --kv-type f32,f16,q8_0 --json | jq .tests
      glassbox bench -m model.gguf -p 2048 -n 0 --capture none,spans,all
      glassbox bench growth
cmd-bench-prompt = 提示的词元数；0 表示不测
cmd-bench-generate = 生成的词元数；0 表示不测
cmd-bench-depth = 开始计时之前缓存里已有的词元数
cmd-bench-kv_type = 缓存怎样存放键和值
cmd-bench-capture = 同时观察什么：注意力每一行在 8 个片段上的份额、熵和距离，或者全部统计量
cmd-bench-repetitions = 预热一次之后，每项测量的次数
cmd-bench-paced = 从标准输入每次读一行测试名（`pp512`、`tg64 @ d2048`、`load`）并测一次：用于与另一个程序轮流测量
cmd-bench-json = 输出一个 JSON 文档：每次测量、内存、机器

cmd-growth = 测量时间和内存怎样随文本长度增长，并拟合指数
cmd-growth-examples =
    曲线：有缓存和没有缓存的生成，用整个分数矩阵和分块计算的注意力，
    MHA、GQA、MQA 的缓存。指数取自与所有点最吻合的 n 的幂，并给出 95 % 置信区间。

    示例：
      glassbox bench growth
      glassbox bench growth --curve generation-cached,generation-uncached -m model.gguf
      glassbox bench growth --json | jq '.curves[] | {"{"}name, exponent{"}"}'
cmd-growth-model = 用来生成的模型；单独的注意力及其缓存与它无关
cmd-growth-curve = 只测这些曲线
cmd-growth-json = 输出一个 JSON 文档：每一个点
growth-head-curve = 曲线
growth-head-theory = 理论
growth-head-exponent = 指数
growth-head-interval = 95 % 置信区间
growth-head-last-step = 最后一步
growth-head-largest = 最大 n
growth-head-there = 该处的值
growth-head-what = 测的是什么
growth-attention-uncached = 生成 n 个词元时全部步骤的注意力，每一步都从头计算
growth-attention-cached = 生成 n 个词元时全部步骤的注意力，保留键和值
growth-generation-uncached = 整个模型生成 n 个词元，每一步都从头计算；矩阵为 2，注意力为 3
growth-generation-cached = 整个模型生成 n 个词元，保留键和值；矩阵为 1，注意力为 2
growth-textbook-time = n 个词元的注意力，使用整个分数矩阵
growth-tiled-time = n 个词元的注意力，分块计算
growth-textbook-memory = n 个词元的注意力所用的内存，使用整个分数矩阵
growth-tiled-memory = n 个词元的注意力所用的内存，分块计算，含查询、键和值
growth-uncached-memory = 整个模型生成第 n 个词元的那一步所用的内存，从头计算
growth-cached-memory = 整个模型读过 n 个词元后的缓存，f32
growth-cache-mha = n 个词元的缓存，32 个查询头有 32 个 128 维的键值头，一层，f16
growth-cache-gqa = 同上，8 个键值头，为其四分之一
growth-cache-mqa = 同上，1 个键值头，为其 32 分之一

cmd-explain = 打印一个模型的前向计算过程和各处大小
cmd-sites = 列出可以观察的位置
cmd-schema = 打印测试集文件的 JSON Schema，供编辑器使用
cmd-completions = 打印某个 shell 的补全脚本
cmd-completions-examples =
    示例：
      glassbox completions bash > ~/.local/share/bash-completion/completions/glassbox
cmd-completions-shell = 哪个 shell
cmd-help = 显示帮助，也可以指定子命令

arg-model = .gguf 文件、Hugging Face 文件夹、Hugging Face 缓存中的 org/name[@版本][:量化方式]，或 `specimen`
arg-named = 模型，写法与 `-m` 之后相同
arg-threads = 线程数；默认与核心数相同
arg-kernels = 每个机制用哪个版本：`textbook` 是双精度的定义，很慢
arg-activations = 激活值如何与量化权重相乘：`rounded` 先舍入为字节，快，与 llama.cpp 相同；`exact` 保持原样
arg-kv_type = 缓存如何存储键和值：类型越小越省内存，但会舍入
arg-allow_unread = 接受一个没有被读取的配置键，并说明它为什么无害
arg-system = 对话的系统消息
arg-runs = 存放各次运行的文件夹
arg-resume = 继续一次被中断的运行，给出文件夹或名字；`last` 表示最新的一次
arg-limit = 每项测试最多用多少个样本；默认由测试集决定
arg-strict = 证据不足的门槛以退出码 101 结束
arg-lang = 网页和摘要的语言：en 或 zh-CN
arg-json = 在标准输出写一个 JSON 文档
arg-quiet = 不显示进度和表格：只显示报告的路径

evidence-answer = 答案
evidence-part = 提示的部分
evidence-mass = 注意力
evidence-lift = 提升
evidence-value = 按值加权
evidence-ledger = 给 logit 加了
evidence-knockout = 读不到时
evidence-deletion = 删去时
evidence-agree = 一致吗？
evidence-none = 一致：并非来自这里
evidence-all = 一致：来自这里
evidence-some = 不一致：认为来自这里的有
evidence-cap = 软上限之前，上限
evidence-logit = logit
evidence-parts = 以上部分
evidence-elsewhere = 对其他词元的注意力
evidence-memory = 前馈（权重所知）
evidence-embedding = 嵌入
evidence-bias = 偏置
evidence-rounding = 舍入
evidence-legend = ✓ 该方法认为答案来自这里：注意力最多，相对长度最多，按值加权最多，加得最多；或者当后面的词元读不到它、以及把它删去时，答案改变，或概率降到一半以下
